import type { Context, RequestSource } from "../../core/context.ts";
import { digestOf } from "../../core/digest.ts";
import { ApiError } from "../../core/errors.ts";
import type { Tx } from "../../platform/db/database.ts";
import { reportFailure } from "./failures.ts";
import { addAttempt, deleteAttempt, listAttempts } from "./queries.ts";

export interface AttemptWindow {
  times: number;
  seconds: number;
}

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
export const LONGEST_WINDOW_SECONDS = DAY;

/** All sliding windows of a kind apply at once: a fixed window would let twice as many pass around its border. */
const LIMITS = {
  "magic-link of an address": [
    { times: 1, seconds: 30 },
    { times: 5, seconds: 15 * MINUTE },
    { times: 20, seconds: DAY },
  ],
  "magic-link in a known browser": [
    { times: 1, seconds: 30 },
    { times: 5, seconds: 15 * MINUTE },
    { times: 20, seconds: DAY },
  ],
  "registration of an address": [
    { times: 5, seconds: 15 * MINUTE },
    { times: 20, seconds: DAY },
  ],
  "emails for a network": [{ times: 20, seconds: HOUR }],
  "login of an address": [{ times: 10, seconds: 15 * MINUTE }],
  "login in a known browser": [{ times: 10, seconds: 15 * MINUTE }],
  "login from a network": [{ times: 100, seconds: 10 * MINUTE }],
  "way to a provider from a network": [{ times: 100, seconds: 10 * MINUTE }],
  "password of an account": [{ times: 10, seconds: 15 * MINUTE }],
} satisfies Record<string, AttemptWindow[]>;

type LimitKind = keyof typeof LIMITS;
/** A null subject cannot be told apart from others and is not limited. */
type LimitKey = [kind: LimitKind, subject: string | null];

/** RATE_LIMIT_EXCEEDED with the limit that was reached, which only the audit log shows. */
class TooManyAttempts extends ApiError {
  readonly kind: LimitKind;
  constructor(kind: LimitKind, retryAfterSeconds: number) {
    super("RATE_LIMIT_EXCEEDED", undefined, undefined, retryAfterSeconds);
    this.kind = kind;
  }
}

/** Counted attempts, to be released when they turn out to be legitimate. */
export interface CountedAttempts {
  at: Date;
  tried: LimitKey[];
}

/**
 * Counts before the result is known, so that parallel attempts cannot pass together. Throws RATE_LIMIT_EXCEEDED when a
 * window is full; the transaction then rolls back and nothing is counted. Addresses come before networks: one lock
 * order avoids deadlocks.
 */
export async function countAttempts(ctx: Context, tx: Tx, tried: LimitKey[]): Promise<CountedAttempts> {
  const at = ctx.now();
  for (const [kind, subject] of tried) {
    if (subject === null) continue;
    if (await addAttempt(tx, { kind, subject: digestOf(subject), at, windows: LIMITS[kind] })) continue;
    const times = await listAttempts(tx, kind, digestOf(subject));
    throw new TooManyAttempts(kind, secondsUntilAllowed(times, LIMITS[kind], at));
  }
  return { at, tried };
}

interface LimitedAction {
  subject: string;
  /** Called only when a limit was reached. */
  account(): Promise<{ id: string } | undefined>;
  source: RequestSource;
}

/** Runs `work` in its own transaction. A limit that is reached is audited. */
export async function runWithinLimits<T>(
  ctx: Context,
  { subject, account, source }: LimitedAction,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  try {
    return await ctx.db.transaction().execute(work);
  } catch (error) {
    if (error instanceof TooManyAttempts) {
      const accountId = (await account())?.id ?? null;
      const details = { limit: error.kind };
      await reportFailure(ctx, { action: "sign_in.locked", subject, accountId, source, details });
    }
    throw error;
  }
}

export async function releaseAttempts(tx: Tx, { at, tried }: CountedAttempts): Promise<void> {
  for (const [kind, subject] of tried) {
    if (subject !== null) await deleteAttempt(tx, kind, digestOf(subject), at);
  }
}

/** Until every window has room. */
function secondsUntilAllowed(times: Date[], windows: AttemptWindow[], now: Date): number {
  const newestFirst = times.map((time) => time.getTime()).sort((a, b) => b - a);
  const free = windows.map((window) => (newestFirst[window.times - 1] ?? 0) + window.seconds * 1000);
  return Math.max(1, Math.ceil((Math.max(...free) - now.getTime()) / 1000));
}
