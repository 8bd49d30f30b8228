import type { ErrorCode, Quota } from "@stoa/contract";
import type { Caller } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { networkOf } from "../../core/network.ts";
import { isFull, type RateLimitCounters, type RateLimitKey, type RateLimitWindow } from "./counters.ts";

export interface RateLimits {
  /** Counts a request. Returns the headers of the response, and 429 if a quota was used up. */
  count(caller: Caller, ip: string): Promise<{ headers: Record<string, string>; refusal: ApiError | null }>;
  /** The headers of a request that counts in no quota. */
  peek(caller: Caller, ip: string): Promise<Record<string, string>>;
  /** Throws 429 after too many wrong passwords or tokens from the network. */
  mustNotBeBlocked(ip: string): void;
  /** Counts a wrong credential. Returns 429 past the limit. */
  countFailure(entrance: AuthChannel, ip: string): Promise<ApiError | null>;
}

/**
 * Where a wrong credential was sent. Keys and tokens cannot be guessed, so a right one always passes: otherwise a
 * forgotten script would lock out a whole office. Passwords can be guessed, so sign-in is blocked.
 */
export type AuthChannel = "api" | "sign-in";

export const authChannelOf = (base: string | undefined): AuthChannel =>
  base === "/api/auth" ? "sign-in" : "api";

const WRONG_CREDENTIAL: ReadonlySet<ErrorCode | undefined> = new Set<ErrorCode>([
  "INVALID_API_KEY",
  "INVALID_CREDENTIALS",
  "INVALID_TOKEN",
]);

/** TWO_FACTOR_REQUIRED is no wrong credential. */
export const isWrongCredential = (error: unknown) =>
  error instanceof ApiError && WRONG_CREDENTIAL.has(error.code);

interface RateLimitOptions {
  counters: RateLimitCounters;
  now(): Date;
  allowanceOf(caller: Caller, ip: string): RateLimitKey;
  failedCredentials: Quota;
  /** Called once when a network is blocked from sign-in. */
  onBlocked?(entrance: AuthChannel, ip: string): void;
}

export function createRateLimits({
  counters,
  now,
  allowanceOf,
  failedCredentials,
  ...on
}: RateLimitOptions): RateLimits {
  const barred = new BarredNetworks(now);
  return {
    async count(caller, ip) {
      const { allowed, windows } = await counters.consume(allowanceOf(caller, ip));
      if (allowed) return { headers: headersOf(scarcest(windows), windows, now()), refusal: null };
      const window = lastToEnd(windows.filter(isFull)) ?? scarcest(windows);
      return { headers: headersOf(window, windows, now()), refusal: tooMany(window, "requests", now()) };
    },
    async peek(caller, ip) {
      const windows = await counters.peek(allowanceOf(caller, ip));
      return headersOf(scarcest(windows), windows, now());
    },
    mustNotBeBlocked(ip) {
      const refusal = barred.refusalFor(keyOf("sign-in", ip));
      if (refusal) throw refusal;
    },
    async countFailure(entrance, ip) {
      const key = keyOf(entrance, ip);
      const known = barred.refusalFor(key);
      if (known) return known;
      const { allowed, windows } = await counters.consume({ key, quotas: [failedCredentials] });
      const window = scarcest(windows);
      if (isFull(window)) {
        barred.add(key, window);
        on.onBlocked?.(entrance, ip);
      }
      return allowed ? null : tooManyFailures(window, now());
    },
  };
}

/** The networks that used up their quota of wrong credentials, until their window ends. */
class BarredNetworks {
  readonly #windows = new Map<string, RateLimitWindow>();
  readonly #now: () => Date;

  constructor(now: () => Date) {
    this.#now = now;
  }

  add(key: string, window: RateLimitWindow): void {
    // Roughly sorted by end. Later entries that have ended are removed by the next call.
    for (const [other, { endsAt }] of this.#windows) {
      if (this.#isAhead(endsAt)) break;
      this.#windows.delete(other);
    }
    this.#windows.set(key, window);
  }

  refusalFor(key: string): ApiError | null {
    const window = this.#windows.get(key);
    return window && this.#isAhead(window.endsAt) ? tooManyFailures(window, this.#now()) : null;
  }

  #isAhead(end: Date | null): boolean {
    return end !== null && end > this.#now();
  }
}

const tooManyFailures = (window: RateLimitWindow, now: Date) => tooMany(window, "wrong credentials", now);

const keyOf = (entrance: AuthChannel, ip: string) => `failed:${entrance}:${networkOf(ip)}`;

const remainingIn = ({ quota, used }: RateLimitWindow) => Math.max(0, quota.requests - used);
const shareLeft = (window: RateLimitWindow) => remainingIn(window) / window.quota.requests;

/** The smallest remaining share; of equal shares the one that ends last. */
const scarcest = (windows: RateLimitWindow[]): RateLimitWindow => windows.reduce(scarcer);
const scarcer = (a: RateLimitWindow, b: RateLimitWindow) =>
  (shareLeft(a) - shareLeft(b) || endOf(b) - endOf(a)) <= 0 ? a : b;

const lastToEnd = (windows: RateLimitWindow[]) => windows.toSorted((a, b) => endOf(b) - endOf(a))[0];
const endOf = ({ endsAt }: RateLimitWindow) => endsAt?.getTime() ?? 0;

const secondsUntil = (window: RateLimitWindow, now: Date) =>
  Math.max(1, Math.ceil((endOf(window) - now.getTime()) / 1000));

const NAMES: Record<number, string> = { 60: "minute", 3600: "hour", 86400: "day" };
const nameOf = ({ seconds }: Quota) => NAMES[seconds] ?? `${seconds}s`;

const policies = new WeakMap<Quota, string>();

function policyOf(quota: Quota): string {
  let policy = policies.get(quota);
  if (policy === undefined) {
    policy = `"${nameOf(quota)}";q=${quota.requests};w=${quota.seconds}`;
    policies.set(quota, policy);
  }
  return policy;
}

/** The usual X-RateLimit fields, and those of draft-ietf-httpapi-ratelimit-headers. */
function headersOf(window: RateLimitWindow, all: RateLimitWindow[], now: Date): Record<string, string> {
  const { quota } = window;
  return {
    "x-ratelimit-limit": String(quota.requests),
    "x-ratelimit-remaining": String(remainingIn(window)),
    "x-ratelimit-reset": String(Math.ceil(endOf(window) / 1000)),
    "ratelimit-policy": all.map((each) => policyOf(each.quota)).join(", "),
    ratelimit: `"${nameOf(quota)}";r=${remainingIn(window)};t=${secondsUntil(window, now)}`,
  };
}

export const RATE_LIMIT_HEADERS = [
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
  "RateLimit-Policy",
  "RateLimit",
];

function tooMany(window: RateLimitWindow, what: string, now: Date): ApiError {
  const { requests, seconds } = window.quota;
  const retryAfter = secondsUntil(window, now);
  return new ApiError(
    "RATE_LIMIT_EXCEEDED",
    `Too many ${what}: ${requests} in ${seconds} seconds are allowed. Try again in ${retryAfter} seconds.`,
    { limit: requests, windowSeconds: seconds, resetAt: new Date(endOf(window)).toISOString() },
    retryAfter,
  );
}
