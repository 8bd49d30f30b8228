import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { type Market, openMarket } from "../../../test/market.ts";
import { runChecks } from "../../backoffice/operator/doctor.ts";
import { listScheduledJobs } from "../../jobs.ts";
import {
  cronPeriodSeconds,
  isLate,
  type JobStats,
  recordJobRuns,
  registerScheduledJobs,
} from "./job-stats.ts";

const MINUTE_MS = 60_000;

suite("the period of a job", () => {
  test("derived from its cron expression", () => {
    const periods = ["* * * * *", "*/5 * * * *", "17 * * * *", "43 3 * * *"].map(cronPeriodSeconds);
    assert.deepEqual(periods, [60, 300, 3_600, 86_400]);
  });

  for (const cron of ["0 6 * * 1", "0 6 1 * *", "1,2 * * * *", "", "* 3 * * *x"])
    test(`"${cron}": unknown`, () => assert.throws(() => cronPeriodSeconds(cron), /is not known/));

  test("three periods without success: late", () => {
    const knownSince = new Date("2026-06-15T12:00:00Z");
    const never: JobStats = {
      name: "sweep",
      periodSeconds: 60,
      knownSince,
      runs: 0,
      failures: 0,
      lastSuccessAt: null,
      lastFailureAt: null,
    };
    const after = (minutes: number) => new Date(knownSince.getTime() + minutes * MINUTE_MS);
    assert.deepEqual(
      [3, 3.1].map((minutes) => isLate(never, after(minutes))),
      [false, true],
    );
    const lately = { ...never, lastSuccessAt: after(10) };
    assert.deepEqual(
      [13, 13.1].map((minutes) => isLate(lately, after(minutes))),
      [false, true],
    );
    assert.equal(isLate({ ...lately, periodSeconds: null }, after(1_000)), false);
  });
});

suite("the state of jobs", () => {
  let market: Market;
  before(async () => {
    market = await openMarket();
  });
  after(() => market.close());

  const metrics = async () => (await market.as(null).get("/metrics")).text;
  const findings = async () => {
    const { config, pool } = market.service.ctx;
    const target = String(pool.options.connectionString);
    const all = await runChecks({ config, target }, market.clock.now);
    return Object.fromEntries(all.map(({ check, ...finding }) => [check, finding]));
  };
  const note = (name: string, succeeded: boolean) =>
    recordJobRuns(
      market.service.ctx.pool,
      name,
      { succeeded: Number(succeeded), failed: Number(!succeeded) },
      market.clock.now,
    );

  test("/metrics: the last success of each job", async () => {
    const { ctx } = market.service;
    const scheduled = listScheduledJobs(ctx).map(({ name, cron }) => ({
      name,
      periodSeconds: cronPeriodSeconds(cron),
    }));
    await registerScheduledJobs(
      ctx.pool,
      [...scheduled, { name: "old", periodSeconds: 60 }],
      market.clock.now,
    );
    await registerScheduledJobs(ctx.pool, scheduled, market.clock.now);
    await note("pay-out", true);
    market.clock.forward(MINUTE_MS);
    await note("pay-out", false);
    const text = await metrics();
    assert.doesNotMatch(text, /^job_runs_total\{name="pay-out"\}/m, "this process ran none");
    const succeededAt = (market.clock.now.getTime() - MINUTE_MS) / 1000;
    assert.match(
      text,
      new RegExp(`^job_last_success_timestamp_seconds\\{name="pay-out"\\} ${succeededAt}$`, "m"),
    );
    assert.match(text, /^jobs\{name="send-mail",state="waiting"\} 0$/m);
    assert.doesNotMatch(text, /name="old"/);
  });

  test("doctor: failed, late and abandoned jobs", async () => {
    const { jobs } = await findings();
    assert.deepEqual([jobs!.ok, jobs!.warning], [true, true]);
    assert.match(jobs!.note, /pay-out failed at its last attempt/);
    assert.doesNotMatch(jobs!.note, /late/);
    for (const { name } of listScheduledJobs(market.service.ctx)) await note(name, true);
    assert.equal((await findings())["jobs"]!.warning, undefined);
    market.clock.forward(4 * MINUTE_MS);
    const late = (await findings())["jobs"]!;
    assert.equal(late.warning, true);
    assert.match(
      late.note,
      /reconcile-payouts is late, last done 2026-06-15T12:01:00.000Z: does a worker run\?/,
    );
    assert.doesNotMatch(late.note, /sweep-blobs/);
    const { ctx } = market.service;
    await ctx.jobs.send(ctx.db, "send-mail", {});
    await market.query("update pgboss.job set name = 'send-mail-given-up' where name = 'send-mail'");
    assert.match((await findings())["jobs"]!.note, /send-mail was given up 1 times in the last week/);
  });
});

suite("undecided money", () => {
  let market: Market;
  before(async () => {
    market = await openMarket();
  });
  after(() => market.close());

  test("/metrics: by kind and state; doctor: when it is overdue", async () => {
    const seller = await market.createUser({ role: "seller" });
    const madeAt = market.clock.now;
    market.skipLedgerCheck();
    for (const [currency, status] of [
      ["USD", "pending"],
      ["JPY", "in_transit"],
    ])
      await market.query(
        `insert into payouts (id, seller_id, status, amount_minor, commission_minor, currency, destination, period_start, period_end, created_at)
           values ($1, $2, $3, 5000, 0, $4, 'acct_test', '2026-06-01', '2026-06-07', $5)`,
        [market.service.ctx.newId(), seller.userId, status, currency, madeAt],
      );
    const money = async () => {
      const { config, pool } = market.service.ctx;
      const place = {
        config,
        target: String(pool.options.connectionString),
        embedded: null,
        close: async () => {},
      };
      return (await runChecks(place, market.clock.now)).find(({ check }) => check === "money")!;
    };
    market.clock.forward(60 * MINUTE_MS);
    assert.equal((await money()).note, "2 open, none for too long");
    const { text } = await market.as(null).get("/metrics");
    assert.match(text, /^money_open\{kind="payout",state="pending"\} 1$/m);
    assert.match(text, /^money_open\{kind="order",state="pending"\} 0$/m);
    assert.match(text, /^money_open_oldest_seconds\{kind="payout",state="in_transit"\} 3600$/m);
    assert.match(text, /^money_open_oldest_seconds\{kind="refund",state="approved"\} 0$/m);
    market.clock.forward(1);
    const { warning, note } = await money();
    assert.equal(warning, true);
    assert.match(note, /^1 pending as payout, the oldest since 2026-06-15T12:00:00.000Z/);
    assert.doesNotMatch(note, /in_transit/);
  });
});
