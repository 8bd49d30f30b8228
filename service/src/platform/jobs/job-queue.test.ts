import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import type pg from "pg";
import { PgBoss } from "pg-boss";
import { freePort } from "../../../test/free-port.ts";
import { inFullRun, isFullSize } from "../../../test/full-size.ts";
import { startMailServer } from "../../../test/mail-server.ts";
import { type Market, openMarket } from "../../../test/market.ts";
import { until } from "../../../test/until.ts";
import { type Service, startService } from "../../app.ts";
import type { Config } from "../../core/config/config.ts";
import { createDevEmailSender } from "../../integrations/email/dev-sender.ts";
import { openDatabase, openPool } from "../db/database.ts";
import { queueEmail, sendEmailJob } from "../email/email-queue.ts";
import { renderEmail } from "../email/render-email.ts";
import { bossDatabase, openJobQueue } from "./job-queue.ts";
import { cronPeriodSeconds, recordJobRuns, registerScheduledJobs } from "./job-stats.ts";
import { startJobWorker } from "./job-worker.ts";

const message = renderEmail({ subject: "News", paragraphs: ["Something changed."] });
const ALONE = { api: true, worker: false };
const WORKER = { api: false, worker: true };
const smtp = (port: number): Partial<Config> => ({ mail: "smtp", smtpUrl: `smtp://127.0.0.1:${port}` });

/** A shop that requests jobs without running them, and its workers, which stop before it does. */
async function openShop(t: TestContext, marketOptions: Parameters<typeof openMarket>[0] = {}) {
  const market = await openMarket({ ...marketOptions, config: { roles: ALONE, ...marketOptions.config } });
  const { ctx } = market.service;
  const target = (ctx.pool.options as pg.PoolConfig).connectionString!;
  const workers: Service[] = [];
  t.after(async () => {
    for (const worker of workers) await worker.close();
    await market.close();
  });
  return {
    market,
    ask: (recipient: string) => ctx.db.transaction().execute((tx) => queueEmail(ctx, tx, recipient, message)),
    async startWorker() {
      const overrides = {
        now: ctx.now,
        log: ctx.log,
        ...(marketOptions.mail && { mail: marketOptions.mail }),
      };
      const config = { ...ctx.config, roles: WORKER };
      workers.push(await startService(config, { target, maxConnections: 6 }, overrides));
    },
  };
}

async function openServer(t: TestContext, port?: number) {
  const server = await startMailServer(port === undefined ? {} : { port });
  t.after(() => server.close());
  return server;
}

/** The only job in this state and attempt. */
const jobIn = ({ query }: Market, state: string, { name = sendEmailJob.name, retries = 0 } = {}) =>
  until(`a job in state ${state}`, async () => {
    const { rows } = await query(
      `select *, extract(epoch from start_after - started_on)::float8 as wait
         from pgboss.job where name = $1 and state::text = $2 and retry_count = $3`,
      [name, state, retries],
    );
    return rows[0];
  });

/** Moves the job's start time, since the queue uses the real clock, and may use up attempts. */
const hurry = ({ query }: Market, retries = 0) =>
  query("update pgboss.job set start_after = now(), retry_count = $1 where state = 'retry'", [retries]);

/** Marks the job as held by a killed worker. Returns a queue for the maintenance that workers run every minute. */
async function holdByKilledWorker({ service }: Market): Promise<PgBoss> {
  const boss = new PgBoss({ db: bossDatabase(service.ctx.pool), supervise: false, schedule: false });
  await boss.start();
  assert.equal((await boss.fetch(sendEmailJob.name)).length, 1);
  return boss;
}

const between = (value: number, least: number, most: number) =>
  assert.ok(value >= least && value <= most, `${value} is not between ${least} and ${most}`);

suite("a queued job", { timeout: 300_000 }, () => {
  test("runs in a worker that starts later, after its requester has ended", async (t) => {
    const server = await openServer(t);
    const { market, ask, startWorker } = await openShop(t, { config: smtp(server.port) });
    await ask("ada@example.com");
    await market.service.app.close();
    await startWorker();
    const [got] = await server.received(1);
    assert.deepEqual(got!.recipients, ["ada@example.com"]);
    await jobIn(market, "completed");
  });

  test("several workers: runs once", inFullRun, async (t) => {
    const server = await openServer(t);
    const { market, ask, startWorker } = await openShop(t, { config: smtp(server.port) });
    await Promise.all([startWorker(), startWorker()]);
    const recipients = Array.from({ length: 40 }, (_, at) => `ada${at}@example.com`);
    for (const recipient of recipients) await ask(recipient);
    await until("every email is sent", async () => {
      const { rows } = await market.query("select 1 from emails where sent_at is null");
      return rows.length === 0;
    });
    const got = server.emails.flatMap((one) => one.recipients);
    assert.deepEqual(got.toSorted(), recipients.toSorted());
  });

  test("fails: retried with growing delays until it succeeds", async (t) => {
    const port = await freePort();
    const { market, ask, startWorker } = await openShop(t, { config: smtp(port) });
    await ask("ada@example.com");
    await startWorker();
    between((await jobIn(market, "retry")).wait, 29, 65);
    await hurry(market, 3);
    between((await jobIn(market, "retry", { retries: 4 })).wait, 470, 970);
    // Each attempt waits for the next poll.
    if (isFullSize) {
      await hurry(market, 8);
      between((await jobIn(market, "retry", { retries: 9 })).wait, 7_190, 7_210);
    }
    const server = await openServer(t, port);
    await hurry(market, 3);
    assert.equal((await server.received(1)).length, 1);
    await jobIn(market, "completed", { retries: 4 });
  });

  test("fails for the last time: reported by /metrics and the log, without its data", async (t) => {
    const { market, ask, startWorker } = await openShop(t, { config: smtp(await freePort()) });
    await ask("ada@example.com");
    const waiting = await market.as(null).get("/metrics");
    assert.match(waiting.text, /^jobs\{name="send-mail",state="waiting"\} 1$/m);
    await startWorker();
    await jobIn(market, "retry");
    await hurry(market, sendEmailJob.retries - 1);
    await jobIn(market, "created", { name: `${sendEmailJob.name}-given-up` });
    const { text } = await market.as(null).get("/metrics");
    assert.match(text, /^jobs\{name="send-mail",state="given up"\} 1$/m);
    assert.match(text, /^jobs\{name="send-mail",state="waiting"\} 0$/m);
    const logged = market.logs.join("\n");
    assert.match(logged, /"level":50.*"job":"send-mail".*"attempt":11.*"job given up"/);
    assert.doesNotMatch(logged, /ada@example\.com|Something changed/);
  });

  test("fails: other jobs continue", async (t) => {
    const lines: string[] = [];
    const mail = createDevEmailSender((line) => {
      if (line.includes("broken")) throw new Error("broken");
      lines.push(line);
    });
    const { market, ask, startWorker } = await openShop(t, { mail });
    for (const name of ["ada", "broken", "grace"]) await ask(`${name}@example.com`);
    await startWorker();
    await jobIn(market, "retry");
    await until("two emails", () => lines.length === 2);
    await jobIn(market, "completed");
  });

  test("requested just before the worker stops: waits for the next worker", async (t) => {
    const { market } = await openShop(t);
    const { ctx } = market.service;
    const names: unknown[] = [];
    const job = { ...sendEmailJob, run: async (data: object) => void names.push(data) };
    const request = (name: string) => ctx.jobs.send(ctx.db, job.name, { name });
    await request("ada");
    const worker = await startJobWorker(ctx, [], [job]);
    await jobIn(market, "completed");
    await request("grace");
    await worker.stop();
    assert.deepEqual(names, [{ name: "ada" }]);
    await jobIn(market, "created");
  });

  test("in batches: they run together; when the batch fails, each runs alone and only the broken one fails", async (t) => {
    const { market } = await openShop(t);
    const { ctx } = market.service;
    const batches: unknown[][] = [];
    const alone: unknown[] = [];
    const nameOf = (data: object) => (data as { name: string }).name;
    const mustBeWhole = (names: string[]) => {
      if (names.includes("broken")) throw new Error("broken");
    };
    const job = {
      ...sendEmailJob,
      async run(data: object) {
        alone.push(nameOf(data));
        mustBeWhole([nameOf(data)]);
      },
      batch: {
        size: 3,
        async run(data: object[]) {
          batches.push(data.map(nameOf));
          mustBeWhole(data.map(nameOf));
        },
      },
    };
    const names = ["ada", "broken", "grace", "joan", "mary"];
    await ctx.jobs.sendMany(
      ctx.db,
      sendEmailJob.name,
      names.map((name) => ({ name })),
    );
    const worker = await startJobWorker(ctx, [], [job]);
    await until("four jobs are completed and one failed", async () => {
      const { rows } = await market.query("select runs, failures from job_runs where job = $1", [job.name]);
      return rows[0]?.runs === 5 && rows[0].failures === 1;
    });
    await worker.stop();
    assert.deepEqual(
      batches.map(({ length }) => length),
      [3, 2],
    );
    assert.deepEqual(batches.flat().toSorted(), names);
    assert.deepEqual(alone.toSorted(), batches.find((batch) => batch.includes("broken"))?.toSorted());
    await jobIn(market, "retry");
  });

  test(
    "its worker is killed: another worker runs it after half a minute without heartbeat",
    inFullRun,
    async (t) => {
      const server = await openServer(t);
      const { market, ask, startWorker } = await openShop(t, { config: smtp(server.port) });
      await ask("ada@example.com");
      const boss = await holdByKilledWorker(market);
      const late =
        "update pgboss.job set heartbeat_on = heartbeat_on - interval '1 second' * $1 where state = 'active'";
      await startWorker();
      await boss.supervise(sendEmailJob.name);
      await jobIn(market, "active");
      await market.query(late, [31]);
      await market.query("update pgboss.queue set monitor_claim_on = null, monitor_on = null");
      await boss.supervise(sendEmailJob.name);
      await boss.stop({ close: false });
      between(
        (await jobIn(market, "retry")).wait,
        sendEmailJob.retryDelaySeconds - 1,
        sendEmailJob.retryDelaySeconds + 60,
      );
      await hurry(market);
      assert.deepEqual((await server.received(1))[0]!.recipients, ["ada@example.com"]);
      await jobIn(market, "completed", { retries: 1 });
    },
  );

  test("of a new kind: enqueued with its transaction's connection only", async (t) => {
    const { market } = await openShop(t);
    const { ctx } = market.service;
    const pool = openPool({ target: market.target, maxConnections: 1 });
    const kind = { ...sendEmailJob, name: "new-kind" };
    const jobs = await openJobQueue(pool, ctx.log, [kind]);
    try {
      await openDatabase(pool)
        .transaction()
        .execute((tx) => jobs.send(tx, kind.name, {}));
      assert.equal((await jobs.readStatus())[0]?.waiting, 1);
    } finally {
      await jobs.close();
      await pool.end();
    }
  });

  test("of an unknown kind: refused", async (t) => {
    const { market } = await openShop(t);
    const { ctx } = market.service;
    await assert.rejects(ctx.jobs.send(ctx.db, "send-fax", {}), /no kind of job named send-fax/);
  });
});

suite("a scheduled job", { timeout: 300_000 }, () => {
  test("its worker is killed: the next run starts after a minute without heartbeat", inFullRun, async (t) => {
    const { market } = await openShop(t);
    const { ctx } = market.service;
    const { promise: forEver, resolve: end } = Promise.withResolvers<void>();
    const job = { name: "wait", cron: "* * * * *", run: () => forEver };
    const queue = await startJobWorker(ctx, [job], []);
    const boss = new PgBoss({ db: bossDatabase(ctx.pool), supervise: false, schedule: false });
    await boss.start();
    t.after(async () => {
      end();
      await queue.stop();
      await boss.stop({ close: false });
    });
    // As the scheduler would, which takes half a minute.
    const { rows } = await market.query("select options from pgboss.schedule where name = $1", [job.name]);
    assert.notEqual(await boss.send(job.name, {}, rows[0].options), null);
    const held = await jobIn(market, "active", { name: job.name });
    assert.equal(await boss.send(job.name, {}), null, "one at a time");
    assert.equal(held.heartbeat_seconds, 30);
    await market.query(
      "update pgboss.job set heartbeat_on = heartbeat_on - interval '31 seconds' where id = $1",
      [held.id],
    );
    await market.query("update pgboss.queue set monitor_claim_on = null, monitor_on = null");
    await boss.supervise(job.name);
    await jobIn(market, "failed", { name: job.name });
    assert.notEqual(await boss.send(job.name, {}), null);
  });

  test("at a worker's start: runs when configured so, or when no run happened for a whole period; a removed one is not scheduled any more", async (t) => {
    const { market } = await openShop(t);
    const { ctx } = market.service;
    const ran: string[] = [];
    const job = (name: string, cron: string, atStart?: true) => ({
      ...{ name, cron, ...(atStart && { atStart }) },
      run: async () => void ran.push(name),
    });
    const jobs = [
      job("at-start", "*/10 * * * *", true),
      job("hourly", "11 * * * *"),
      job("recent", "12 * * * *"),
      job("nightly", "11 3 * * *"),
    ];
    await (await startJobWorker(ctx, [job("removed", "11 3 * * *")], [])).stop();
    await registerScheduledJobs(
      ctx.pool,
      jobs.map(({ name, cron }) => ({ name, periodSeconds: cronPeriodSeconds(cron) })),
      ctx.now(),
    );
    market.clock.forward(3_600_000);
    await recordJobRuns(ctx.pool, "recent", { succeeded: 1, failed: 0 }, ctx.now());
    const queue = await startJobWorker(ctx, jobs, []);
    t.after(() => queue.stop());
    const { rows: scheduled } = await market.query(
      "select s.name, r.job from pgboss.schedule s full join job_runs r on r.job = s.name order by 1",
    );
    const names = jobs.map(({ name }) => name).toSorted();
    assert.deepEqual(
      scheduled,
      names.map((name) => ({ name, job: name })),
    );
    await until("hourly ran", () => ran.includes("hourly"));
    await until("at-start ran", () => ran.includes("at-start"));
    assert.deepEqual(ran.toSorted(), ["at-start", "hourly"]);
    const runs = async () => (await market.as(null).get("/metrics")).text.match(/^job_runs_total.*$/gm) ?? [];
    await until("both are counted", async () => (await runs()).length === 2);
    assert.deepEqual((await runs()).toSorted(), [
      'job_runs_total{name="at-start"} 1',
      'job_runs_total{name="hourly"} 1',
    ]);
  });
});
