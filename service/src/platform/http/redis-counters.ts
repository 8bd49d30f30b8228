import { once } from "node:events";
import { createClient } from "@redis/client";
import type { Quota } from "@stoa/contract";
import { RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import type { ConsumeResult, RateLimitCounters, RateLimitKey, RateLimitWindow } from "./counters.ts";

const CONNECT_MS = 2_000;
const RECONNECT_AT_MOST_MS = 5_000;

/**
 * Unlike the library's own script, it does not count refused requests (one above the limit reports a refusal). A refund
 * to an ended window does not start a new one. A window whose requests were all refunded has not started.
 */
const COUNT = `
local used = tonumber(redis.call('get', KEYS[1]) or '0')
local change, limit = tonumber(ARGV[1]), tonumber(ARGV[3])
if change < 0 and used == 0 then return {0, 0} end
if change > 0 and used + change > limit then return {limit + 1, redis.call('pttl', KEYS[1])} end
if used + change == 0 then redis.call('del', KEYS[1]) return {0, 0} end
redis.call('set', KEYS[1], 0, 'EX', ARGV[2], 'NX')
return {redis.call('incrby', KEYS[1], change), redis.call('pttl', KEYS[1])}`;

type Client = ReturnType<typeof clientOf>;

/** Commands fail at once without a connection, because callers have a fallback. */
const clientOf = (url: string) =>
  createClient({
    url,
    disableOfflineQueue: true,
    socket: {
      connectTimeout: CONNECT_MS,
      reconnectStrategy: (tries) => Math.min(50 * 2 ** tries, RECONNECT_AT_MOST_MS),
    },
  });

export async function pingRedis(url: string): Promise<void> {
  const client = createClient({ url, socket: { connectTimeout: CONNECT_MS, reconnectStrategy: false } });
  client.on("error", () => {}); // connect() rejects
  try {
    await client.connect();
    await client.ping();
  } finally {
    client.destroy();
  }
}

/** One limiter per quota. Quotas of one length share a window, so that it continues when the plan changes. */
function limitersOn(client: Client) {
  const limiters = new Map<string, RateLimiterRedis>();
  const limiterFor = ({ requests, seconds }: Quota) =>
    new RateLimiterRedis({
      storeClient: client,
      useRedisPackage: true,
      keyPrefix: `stoa:limit:${seconds}`,
      points: requests,
      duration: seconds,
      customIncrTtlLuaScript: COUNT,
    });
  return (quota: Quota) => {
    const name = `${quota.requests}/${quota.seconds}`;
    const limiter = limiters.get(name) ?? limiterFor(quota);
    limiters.set(name, limiter);
    return limiter;
  };
}

/**
 * Counts in Redis or Valkey for all processes of one store, by the store's clock. Counts the windows from the shortest
 * to the longest; a refusal stops and refunds the earlier ones.
 */
export class RedisCounters implements RateLimitCounters {
  readonly #client: Client;
  readonly #limiterOf: (quota: Quota) => RateLimiterRedis;
  readonly #now: () => Date;
  #connecting: Promise<void> | undefined;

  constructor(url: string, now: () => Date) {
    this.#client = clientOf(url);
    // Commands report their errors; without a listener the event would end the process.
    this.#client.on("error", () => {});
    this.#limiterOf = limitersOn(this.#client);
    this.#now = now;
  }

  async consume(allowance: RateLimitKey): Promise<ConsumeResult> {
    await this.#connected();
    const counted: RateLimitWindow[] = [];
    for (const quota of allowance.quotas) {
      const result = await consume(this.#limiterOf(quota), allowance.key);
      if (result === "refused") return this.#refuse(allowance, counted);
      counted.push(this.#toWindow(quota, result));
    }
    return { allowed: true, windows: counted };
  }

  async peek({ key, quotas }: RateLimitKey): Promise<RateLimitWindow[]> {
    await this.#connected();
    const results = await Promise.all(quotas.map((quota) => this.#limiterOf(quota).get(key)));
    return quotas.map((quota, at) => this.#toWindow(quota, results[at] ?? new RateLimiterRes()));
  }

  async close(): Promise<void> {
    if (this.#client.isOpen) this.#client.destroy();
  }

  #connected(): Promise<void> {
    this.#connecting ??= connect(this.#client);
    return this.#connecting;
  }

  async #refuse(allowance: RateLimitKey, counted: RateLimitWindow[]): Promise<ConsumeResult> {
    await Promise.all(counted.map(({ quota }) => this.#limiterOf(quota).reward(allowance.key)));
    return { allowed: false, windows: await this.peek(allowance) };
  }

  #toWindow(quota: Quota, { consumedPoints: used, msBeforeNext }: RateLimiterRes): RateLimitWindow {
    if (msBeforeNext <= 0) return { quota, used: 0, endsAt: null };
    return { quota, used, endsAt: new Date(this.#now().getTime() + msBeforeNext) };
  }
}

/** Waits for the connection, at most CONNECT_MS; the client continues to reconnect by itself. */
async function connect(client: Client): Promise<void> {
  client.connect().catch(() => {});
  await once(client, "ready", { signal: AbortSignal.timeout(CONNECT_MS) }).catch(() => {});
}

async function consume(limiter: RateLimiterRedis, key: string): Promise<RateLimiterRes | "refused"> {
  try {
    return await limiter.consume(key);
  } catch (thrown) {
    if (thrown instanceof RateLimiterRes) return "refused";
    throw thrown;
  }
}
