import type { Quota } from "@stoa/contract";
import { builtInPlans } from "@stoa/service/core/config/plan-config.ts";
import {
  MemoryCounters,
  type RateLimitCounters,
  type RateLimitKey,
} from "@stoa/service/platform/http/counters.ts";
import { RedisCounters } from "@stoa/service/platform/http/redis-counters.ts";
import { type Redis, startRedis, whyNoRedis } from "@stoa/service/test/redis.ts";
import type { Options } from "../options.ts";
import { atEnd } from "../processes.ts";
import { median } from "../quantile.ts";
import type { Report } from "../report.ts";

const ROUNDS = 5;
const ACCOUNTS = 1_000;
const AT_ONCE = 32;
const TAKES = { memory: 100_000, redis: 3_000 };

const now = () => new Date();
const wide = (quotas: Quota[]) => quotas.map(({ seconds }) => ({ seconds, requests: 1_000_000_000 }));
const threeWindows = wide(builtInPlans.plans.pro.quotas);
const oneWindow = wide(builtInPlans.plans.free.quotas);
const full: Quota[] = builtInPlans.plans.pro.quotas.map(({ seconds }) => ({ seconds, requests: 1 }));

/** The measured operation, and its repetitions. */
interface Subject {
  name: string;
  times: number;
  run(turn: number): Promise<unknown>;
}

/** The cost of the rate limiter per request, by its store. */
export async function measureLimits(_options: Options): Promise<Report> {
  const subjects = [
    ...subjectsOf("memory", new MemoryCounters(now), TAKES.memory),
    ...(await redisSubjects()),
  ];
  const alone = subjects.map((): number[] => []);
  const together = subjects.map((): number[] => []);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [at, subject] of subjects.entries()) {
      alone[at]!.push(await microsecondsEach(subject, 1));
      together[at]!.push(await microsecondsEach(subject, AT_ONCE));
    }
  }
  const base = median(together[1]!);
  return {
    columns: ["a request is counted in", "µs, one at a time", `µs each, ${AT_ONCE} at once`, "of memory"],
    rows: subjects.map(({ name }, at) => {
      const [one, each] = [median(alone[at]!), median(together[at]!)];
      return [name, one.toFixed(1), each.toFixed(1), `${(each / base).toFixed(1)}×`];
    }),
    notes: [
      `${ROUNDS} rounds in turn, medians, over ${ACCOUNTS} accounts; "of memory" compares with three windows in memory, ${AT_ONCE} at once. ${whyNoRedis || "Redis runs on the same machine, so no network lies between."}`,
    ],
  };
}

async function redisSubjects(): Promise<Subject[]> {
  if (whyNoRedis) return [];
  const redis: Redis = await startRedis();
  atEnd(() => redis.stop());
  const counters = new RedisCounters(redis.url, now);
  atEnd(() => counters.close());
  const ping = { name: "Redis: a bare PING, for comparison", times: TAKES.redis, run: () => redis.ping() };
  return [ping, ...subjectsOf("Redis", counters, TAKES.redis)];
}

const subjectsOf = (where: string, counters: RateLimitCounters, times: number): Subject[] =>
  (
    [
      ["one window", oneWindow],
      ["three windows", threeWindows],
      ["three windows, refused", full],
    ] as const
  ).map(([what, quotas]) => ({
    name: `${where}: ${what}`,
    times,
    run: (turn) => counters.consume(allowanceOf(what, quotas, turn)),
  }));

const allowanceOf = (what: string, quotas: Quota[], turn: number): RateLimitKey => ({
  key: `account:${what}:${turn % ACCOUNTS}`,
  quotas,
});

async function microsecondsEach({ times, run }: Subject, atOnce: number): Promise<number> {
  let turn = 0;
  const worker = async () => {
    while (turn < times) await run(turn++);
  };
  const begun = performance.now();
  await Promise.all(Array.from({ length: atOnce }, worker));
  return ((performance.now() - begun) * 1000) / times;
}
