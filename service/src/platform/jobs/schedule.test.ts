import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { sql } from "kysely";
import { runs } from "../../../test/full-size.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { type Market, openMarket } from "../../../test/market.ts";
import { ProcessKilled } from "../../../test/payouts.ts";
import type { Context } from "../../core/context.ts";
import { HOUR_MS } from "../../core/dates.ts";
import { runSchedule, type Schedule } from "./schedule.ts";

const SLOT_MS = 24 * HOUR_MS;
/** Each scheduled run writes these items, one per transaction. */
const ITEMS = [1, 2, 3];

let market: Market;
before(async () => {
  market = await openMarket();
  await market.query(
    "create table done (job text, slot timestamptz, item int, at serial, primary key (job, slot, item))",
  );
  // No unique key, so that duplicates are visible.
  await market.query("create table deeds (job text, slot timestamptz, item int, at serial)");
});
after(() => market.close());

/** The next midnight, which makes scheduled times countable. */
const nextMidnight = (after: Date) => new Date((Math.floor(after.getTime() / SLOT_MS) + 1) * SLOT_MS);

/** A worker with its own clock that dies before this many items; Infinity: never. */
interface Worker {
  ahead: number;
  dies: number;
}

/** Writes each item once per scheduled run, and skips those written before a kill. */
function jobOf(name: string, dies = Number.POSITIVE_INFINITY): Schedule {
  let steps = 0;
  const step = () => {
    if (steps++ >= dies) throw new ProcessKilled();
  };
  return {
    name,
    next: nextMidnight,
    async run(slot, piece) {
      for (const item of ITEMS) {
        step();
        await piece((tx) =>
          sql`with mine as (
                insert into done (job, slot, item) values (${name}, ${slot}, ${item})
                on conflict do nothing returning job, slot, item)
              insert into deeds (job, slot, item) select * from mine`.execute(tx),
        );
      }
      step();
    },
  };
}

const ctxAt = (now: Date): Context => ({ ...market.service.ctx, now: () => now });

/** Runs until finished or killed. */
async function work(name: string, { ahead, dies }: Worker): Promise<void> {
  const now = new Date(market.clock.now.getTime() + ahead);
  await runSchedule(ctxAt(now), jobOf(name, dies)).catch((error) => {
    if (!(error instanceof ProcessKilled)) throw error;
  });
}

/** The written rows in order. */
async function writtenRows(name: string): Promise<string[]> {
  const { rows } = await market.query("select slot, item from deeds where job = $1 order by at", [name]);
  return rows.map(({ slot, item }) => `${slot.toISOString()} ${item}`);
}

async function slotsOf(name: string) {
  const { rows } = await market.query(
    `select slot::text as slot, done_at from scheduled_runs where job = $1 order by scheduled_runs.slot`,
    [name],
  );
  return { first: rows[0]!, later: rows.slice(1) };
}

/** Every scheduled time after `start` up to `end`. */
function slotsBetween(start: Date, end: Date): Date[] {
  const slots: Date[] = [];
  for (let slot = nextMidnight(start); slot <= end; slot = nextMidnight(slot)) slots.push(slot);
  return slots;
}

let jobs = 0;
const newName = () => `job ${jobs++}`;

test("scheduled times: start when the schedule is first checked", async () => {
  const name = newName();
  const look = () => runSchedule(market.service.ctx, jobOf(name));
  await look();
  assert.deepEqual(await writtenRows(name), []);
  const { first, later } = await slotsOf(name);
  assert.deepEqual([first.slot, first.done_at, later], ["-infinity", market.clock.now, []]);
  const slot = nextMidnight(market.clock.now);
  market.clock.now = new Date(slot.getTime() - 1);
  await look();
  assert.deepEqual(await writtenRows(name), []);
  market.clock.now = slot;
  await look();
  assert.equal((await writtenRows(name)).length, ITEMS.length);
});

test("after days of downtime: each scheduled time runs, the oldest first", async () => {
  const name = newName();
  await runSchedule(market.service.ctx, jobOf(name));
  const start = market.clock.now;
  market.clock.forward(9.5 * SLOT_MS);
  await runSchedule(market.service.ctx, jobOf(name));
  const slots = slotsBetween(start, market.clock.now);
  assert.equal(slots.length, 9);
  assert.deepEqual(
    await writtenRows(name),
    slots.flatMap((slot) => ITEMS.map((item) => `${slot.toISOString()} ${item}`)),
  );
});

test("a scheduled time that fails: tried again before any later one", async () => {
  const name = newName();
  await runSchedule(market.service.ctx, jobOf(name));
  market.clock.forward(2 * SLOT_MS);
  await assert.rejects(runSchedule(market.service.ctx, jobOf(name, 2)), ProcessKilled);
  assert.equal((await writtenRows(name)).length, 2);
  await runSchedule(market.service.ctx, jobOf(name));
  assert.equal((await writtenRows(name)).length, 2 * ITEMS.length);
});

test("a scheduled time that another worker has finished: writes are refused", async () => {
  const name = newName();
  const { ctx } = market.service;
  await runSchedule(ctx, jobOf(name));
  market.clock.forward(SLOT_MS);
  const slow: Schedule = {
    ...jobOf(name),
    async run(_slot, piece) {
      await runSchedule(ctx, jobOf(name));
      await piece((tx) => sql`insert into deeds (job, slot, item) values (${name}, now(), 9)`.execute(tx));
    },
  };
  await runSchedule(ctx, slow);
  assert.equal((await writtenRows(name)).length, ITEMS.length);
});

test("a scheduled time: not finished while another worker still writes in it", async () => {
  const name = newName();
  const { ctx } = market.service;
  await runSchedule(ctx, jobOf(name));
  market.clock.forward(SLOT_MS);
  const isEnded = async () => (await slotsOf(name)).later.some(({ done_at }) => done_at !== null);
  const slow: Schedule = {
    ...jobOf(name),
    async run(slot, piece) {
      const other = await piece(async (tx) => {
        const working = runSchedule(ctx, jobOf(name));
        await waitForBlockedStatements(market);
        assert.equal(await isEnded(), false);
        await sql`insert into deeds (job, slot, item) values (${name}, ${slot}, 9)`.execute(tx);
        return { working };
      });
      await other.working;
    },
  };
  await runSchedule(ctx, slow);
  assert.ok(await isEnded());
  assert.equal((await writtenRows(name)).length, ITEMS.length + 1);
});

test("random clocks and crashes: no scheduled time is missed, doubled or out of order", async () => {
  const worker = fc.record({
    ahead: fc.integer({ min: -3 * HOUR_MS, max: 3 * HOUR_MS }),
    dies: fc.oneof(fc.integer({ min: 0, max: 12 }), fc.constant(Number.POSITIVE_INFINITY)),
  });
  const round = fc.record({
    hours: fc.integer({ min: 0, max: 90 }),
    workers: fc.array(worker, { minLength: 1, maxLength: 4 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(round, { minLength: 1, maxLength: 6 }), async (rounds) => {
      const name = newName();
      for (const { hours, workers } of rounds) {
        market.clock.forward(hours * HOUR_MS);
        await Promise.all(workers.map((one) => work(name, one)));
      }
      const last = { ahead: 3 * HOUR_MS, dies: Number.POSITIVE_INFINITY };
      await work(name, last);
      const { first, later } = await slotsOf(name);
      const end = new Date(market.clock.now.getTime() + last.ahead);
      const slots = slotsBetween(first.done_at, end);
      assert.deepEqual(
        later.map(({ slot, done_at }) => [new Date(slot).getTime(), done_at !== null]),
        slots.map((slot) => [slot.getTime(), true]),
      );
      const written = await writtenRows(name);
      assert.deepEqual(
        written.toSorted(),
        slots.flatMap((slot) => ITEMS.map((item) => `${slot.toISOString()} ${item}`)),
      );
      const order = written.map((deed) => deed.split(" ")[0]!);
      assert.deepEqual(order, order.toSorted());
    }),
    { numRuns: runs(60, 10) },
  );
});
