import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { after, before, suite, test } from "node:test";
import type { Quota } from "@stoa/contract";
import fc from "fast-check";
import { runs } from "../../../test/full-size.ts";
import { holdDeadlines, type Redis, startRedis, whyNoRedis } from "../../../test/redis.ts";
import { until } from "../../../test/until.ts";
import { builtInPlans } from "../../core/config/plan-config.ts";
import { createLog } from "../../core/log.ts";
import { Channel } from "../processes/channel.ts";
import { COUNT, createCountHandler, SharedCounters } from "../processes/shared-counters.ts";
import { MemoryCounters, type RateLimitCounters, type RateLimitKey } from "./counters.ts";
import { FallbackCounters } from "./fallback-counters.ts";
import { RedisCounters } from "./redis-counters.ts";

const clock = {
  ms: Date.parse("2026-06-15T12:00:00.000Z"),
  now: () => new Date(clock.ms),
};

/** An implementation of the counters, and how its time passes. */
interface Driver {
  open(): Promise<RateLimitCounters>;
  forward(ms: number): Promise<void>;
}

const inMemory: Driver = {
  open: async () => new MemoryCounters(clock.now),
  forward: async (ms) => {
    clock.ms += ms;
  },
};

/** Two ends of an IPC channel: messages are JSON and arrive later. */
function connectPeers() {
  const ends = [new EventEmitter(), new EventEmitter()] as const;
  const peerOf = (at: 0 | 1) => ({
    send(message: object) {
      const text = JSON.stringify(message);
      setImmediate(() => ends[at === 0 ? 1 : 0].emit("message", JSON.parse(text)));
      return true;
    },
    on: (event: "message", listener: (message: unknown) => void) => ends[at].on(event, listener),
  });
  return [peerOf(0), peerOf(1)] as const;
}

/** As in two processes of one supervisor. */
function openShared(count = createCountHandler(clock.now)): RateLimitCounters {
  const [here, there] = connectPeers();
  new Channel(there, { [COUNT]: count });
  return new SharedCounters(new Channel(here, {}), clock.now);
}

const inSupervisor: Driver = { open: async () => openShared(), forward: inMemory.forward };

let redis: Redis;
const inRedis: Driver = {
  open: async () => new RedisCounters(redis.url, clock.now),
  async forward(ms) {
    clock.ms += ms;
    await redis.forward(ms);
  },
};

let users = 0;
const allowance = (...quotas: [requests: number, seconds: number][]): RateLimitKey => ({
  key: `account:${++users}`,
  quotas: quotas.map(([requests, seconds]) => ({ requests, seconds })),
});

async function takeAll(counters: RateLimitCounters, limits: RateLimitKey, times: number): Promise<number> {
  const taken = await Promise.all(Array.from({ length: times }, () => counters.consume(limits)));
  return taken.filter(({ allowed }) => allowed).length;
}

const usedIn = async (counters: RateLimitCounters, limits: RateLimitKey) =>
  (await counters.peek(limits)).map(({ used }) => used);

/** The reference model: computes the windows from the times of all served requests. */
function model(quotas: Quota[], served: number[], at: number) {
  return quotas.map(({ seconds }) => {
    let begun = Number.NEGATIVE_INFINITY;
    let used = 0;
    for (const moment of served) {
      if (moment >= begun + seconds * 1000) [begun, used] = [moment, 0];
      used++;
    }
    return at < begun + seconds * 1000 ? used : 0;
  });
}

interface Step {
  gapMs: number;
  user: number;
}

async function behavesAsModel(driver: Driver, quotas: Quota[], steps: Step[]): Promise<void> {
  const counters = await driver.open();
  try {
    const run = ++users;
    const served = new Map<number, number[]>();
    for (const { gapMs, user } of steps) {
      if (gapMs > 0) await driver.forward(gapMs);
      const before = served.get(user) ?? [];
      const expected = model(quotas, before, clock.ms);
      const mayAsk = quotas.every(({ requests }, at) => expected[at]! < requests);
      const { allowed, windows } = await counters.consume({ key: `run${run}:user${user}`, quotas });
      assert.equal(allowed, mayAsk);
      if (allowed) served.set(user, [...before, clock.ms]);
      assert.deepEqual(
        windows.map(({ used }) => used),
        expected.map((used) => (mayAsk ? used + 1 : used)),
      );
    }
  } finally {
    // Also after a failure: a Redis client without its server would reconnect forever and block the process.
    await counters.close();
  }
}

/** Lengths and times that never coincide, so that milliseconds of a real store do not matter. */
const coarse = { seconds: fc.integer({ min: 1, max: 8 }).map((n) => n * 1_000 + 500), gap: 1_000_000 };
const fine = { seconds: fc.integer({ min: 1, max: 20 }), gap: 1 };

const quotasOf = (seconds: fc.Arbitrary<number>) =>
  fc
    .uniqueArray(fc.record({ requests: fc.integer({ min: 1, max: 6 }), seconds }), {
      minLength: 1,
      maxLength: 3,
      selector: (quota) => quota.seconds,
    })
    .map((quotas) => quotas.toSorted((a, b) => a.seconds - b.seconds));

const stepsOf = (gap: number) =>
  fc.array(
    fc.record({
      gapMs: fc.oneof(
        { weight: 3, arbitrary: fc.constant(0) },
        fc.integer({ min: 1, max: gap === 1 ? 8_000 : 5 }).map((n) => n * gap),
      ),
      user: fc.integer({ min: 0, max: 1 }),
    }),
    { maxLength: 40 },
  );

function driverTests(driver: Driver, times: typeof fine, cases: number): void {
  test("a request: counts in every window, the first one starts them", async () => {
    const counters = await driver.open();
    const limits = allowance([5, 60], [9, 3_600]);
    const { allowed, windows } = await counters.consume(limits);
    assert.equal(allowed, true);
    for (const { quota, used, endsAt } of windows) {
      assert.equal(used, 1);
      assert.ok(Math.abs(endsAt!.getTime() - clock.ms - quota.seconds * 1000) < 500);
    }
    await counters.close();
  });

  test("a read of the counters: counts nothing, starts nothing", async () => {
    const counters = await driver.open();
    const limits = allowance([2, 60]);
    for (let times = 0; times < 5; times++)
      assert.deepEqual(await counters.peek(limits), [{ quota: limits.quotas[0], used: 0, endsAt: null }]);
    assert.equal(await takeAll(counters, limits, 3), 2);
    await counters.close();
  });

  test("a refused request: counts in no window", async () => {
    const counters = await driver.open();
    const byShort = allowance([2, 60], [10, 3_600], [20, 86_400]);
    assert.equal(await takeAll(counters, byShort, 8), 2);
    assert.deepEqual(await usedIn(counters, byShort), [2, 2, 2]);
    const byLong = allowance([10, 60], [20, 3_600], [3, 86_400]);
    assert.equal(await takeAll(counters, byLong, 30), 3);
    assert.deepEqual(await usedIn(counters, byLong), [3, 3, 3]);
    await counters.close();
  });

  test("an ended window: restarts with the next request", async () => {
    const counters = await driver.open();
    const limits = allowance([2, 60_000], [3, 8_640_000]);
    await takeAll(counters, limits, 2);
    // A minute before the end, since the time of a store goes on meanwhile.
    await driver.forward(59_940_000);
    assert.equal((await counters.consume(limits)).allowed, false);
    await driver.forward(100_000_000);
    assert.deepEqual(await usedIn(counters, limits), [0, 2]);
    assert.equal((await counters.consume(limits)).allowed, true);
    await driver.forward(59_940_000);
    assert.deepEqual(await usedIn(counters, limits), [1, 3]);
    const { allowed, windows } = await counters.consume(limits);
    assert.equal(allowed, false);
    assert.deepEqual(
      windows.map(({ used, quota }) => used >= quota.requests),
      [false, true],
    );
    await counters.close();
  });

  test("a window: continues when its limit changes with the plan", async () => {
    const counters = await driver.open();
    const limits = allowance([3, 3_600]);
    await takeAll(counters, limits, 5);
    const upgraded = { ...limits, quotas: [{ requests: 5, seconds: 3_600 }] };
    assert.equal(await takeAll(counters, upgraded, 5), 2);
    assert.equal((await counters.consume(limits)).allowed, false);
    await counters.close();
  });

  test("parallel requests: exactly the allowed number pass", async () => {
    const counters = await driver.open();
    const limits = allowance([40, 60], [25, 3_600]);
    assert.equal(await takeAll(counters, limits, 200), 25);
    assert.deepEqual(await usedIn(counters, limits), [25, 25]);
    await counters.close();
  });

  test("a refused request: starts no window", async () => {
    const quotas = [1_500, 4_500].map((seconds) => ({ requests: 1, seconds }));
    const gaps = [0, 4_000_000, 1_000_000, 1_000_000];
    await behavesAsModel(
      driver,
      quotas,
      gaps.map((gapMs) => ({ gapMs, user: 0 })),
    );
  });

  test("random windows and times: decides and counts like the model", async () => {
    await fc.assert(
      fc.asyncProperty(quotasOf(times.seconds), stepsOf(times.gap), (quotas, steps) =>
        behavesAsModel(driver, quotas, steps),
      ),
      { numRuns: runs(cases) },
    );
  });
}

suite("counters in memory", () => {
  driverTests(inMemory, fine, 500);

  for (const [plan, { quotas }] of Object.entries(builtInPlans.plans)) {
    for (const quota of quotas) {
      test(`${plan}: ${quota.requests} requests in ${quota.seconds} s, not more`, async () => {
        const counters = await inMemory.open();
        const limits = { key: plan, quotas: [quota] };
        for (let served = 0; served < quota.requests; served++) await counters.consume(limits);
        assert.deepEqual(await usedIn(counters, limits), [quota.requests]);
        await inMemory.forward(quota.seconds * 1000 - 1);
        assert.equal((await counters.consume(limits)).allowed, false);
        await inMemory.forward(1);
        assert.equal((await counters.consume(limits)).allowed, true);
      });
    }
  }
});

suite("counters in the supervisor", () => {
  driverTests(inSupervisor, fine, 100);

  test("two processes: together the limit of one", async () => {
    const count = createCountHandler(clock.now);
    const [one, other] = [openShared(count), openShared(count)];
    const limits = allowance([30, 60], [20, 3_600]);
    const served = await Promise.all([takeAll(one, limits, 60), takeAll(other, limits, 60)]);
    assert.equal(served[0] + served[1], 20);
    assert.deepEqual(await usedIn(other, limits), [20, 20]);
  });
});

suite("counters in Redis", { skip: whyNoRedis }, () => {
  before(async () => {
    redis = await startRedis();
  });
  after(() => redis.stop());
  driverTests(inRedis, coarse, 40);

  test("two processes: together the limit of one", async () => {
    const [one, other] = [await inRedis.open(), await inRedis.open()];
    const limits = allowance([30, 60], [20, 3_600]);
    const served = await Promise.all([takeAll(one, limits, 60), takeAll(other, limits, 60)]);
    assert.equal(served[0] + served[1], 20);
    assert.deepEqual(await usedIn(other, limits), [20, 20]);
    await Promise.all([one.close(), other.close()]);
  });
});

suite("counters with a fallback", { skip: whyNoRedis }, () => {
  test("Redis is down: count in this process with one log line, then return to Redis", async (t) => {
    holdDeadlines(t);
    const lines: string[] = [];
    const log = createLog("info", { write: (line: string) => void lines.push(line) });
    const store = await startRedis();
    const port = Number(new URL(store.url).port);
    const counters = new FallbackCounters(
      new RedisCounters(store.url, clock.now),
      new MemoryCounters(clock.now),
      {
        now: clock.now,
        log,
      },
    );
    const limits = allowance([3, 3_600]);
    assert.equal(await takeAll(counters, limits, 2), 2);

    await store.stop();
    assert.equal(await takeAll(counters, limits, 5), 3, "a window of its own, with the same limit");
    clock.ms += 3_000;
    assert.equal((await counters.consume(limits)).allowed, false);
    assert.equal(lines.filter((line) => line.includes("counts for itself")).length, 1);

    const again = await startRedis(port);
    await until("Redis counts again", async () => {
      clock.ms += 3_000;
      return (await counters.consume(limits)).allowed;
    });
    assert.equal(lines.filter((line) => line.includes("answers again")).length, 1);
    await counters.close();
    await again.stop();
  });

  test("Redis hangs: half a second of waiting, then one probe for all requests", async (t) => {
    const deadlines = holdDeadlines(t);
    const log = createLog("silent", { write: () => {} });
    const store = await startRedis();
    const counters = new FallbackCounters(
      new RedisCounters(store.url, clock.now),
      new MemoryCounters(clock.now),
      {
        now: clock.now,
        log,
      },
    );
    t.after(async () => {
      await counters.close();
      await store.stop();
    });
    const limits = allowance([100, 3_600]);
    const consumeTen = () => {
      let answered = 0;
      const all = Array.from({ length: 10 }, async () => {
        await counters.consume(limits);
        answered++;
      });
      return { all: Promise.all(all), answered: () => answered };
    };
    assert.equal(await takeAll(counters, limits, 3), 3);
    store.hang();
    const first = consumeTen();
    await until("all ask Redis", () => deadlines.count() === 10);
    assert.equal(first.answered(), 0);
    deadlines.pass();
    await first.all;
    await consumeTen().all;
    assert.equal(deadlines.count(), 0, "none asks it");
    clock.ms += 3_000;
    const later = consumeTen();
    await until("the others are answered", () => later.answered() === 9);
    assert.equal(deadlines.count(), 1, "one asks for all");
    deadlines.pass();
    await later.all;

    const own = (await usedIn(counters, limits))[0];
    assert.equal(own, 30);
    store.wake();
    clock.ms += 3_000;
    await until("Redis counts again", async () => (await usedIn(counters, limits))[0] !== own);
  });
});
