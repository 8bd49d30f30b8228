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

/** All windows of a kind hold together, and slide: there is no border at which twice as many would pass. */
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
  "letters for a network": [{ times: 20, seconds: HOUR }],
  "login of an address": [{ times: 10, seconds: 15 * MINUTE }],
  "login in a known browser": [{ times: 10, seconds: 15 * MINUTE }],
  "login from a network": [{ times: 100, seconds: 10 * MINUTE }],
  "way to a provider from a network": [{ times: 100, seconds: 10 * MINUTE }],
  "password of an account": [{ times: 10, seconds: 15 * MINUTE }],
} satisfies Record<string, AttemptWindow[]>;

type LimitKind = keyof typeof LIMITS;
/** A subject of null is nobody who could be told apart from others, and is not limited. */
type LimitKey = [kind: LimitKind, subject: string | null];

/** RATE_LIMIT_EXCEEDED, with the limit that was reached, for the audit log and not for the caller. */
class TooManyAttempts extends ApiError {
  readonly kind: LimitKind;
  constructor(kind: LimitKind, retryAfterSeconds: number) {
    super("RATE_LIMIT_EXCEEDED", undefined, undefined, retryAfterSeconds);
    this.kind = kind;
  }
}

/** What was counted, to be given back when it turns out not to have been one of those that are limited. */
export interface CountedAttempts {
  at: Date;
  tried: LimitKey[];
}

/**
 * Counts before the outcome is known, so that parallel tries cannot slip through together; RATE_LIMIT_EXCEEDED when a window
 * is full, and then nothing is counted, since it ends the transaction. Addresses come before networks: with one order
 * of locks two transactions never wait for each other.
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
  /** Asked for only when a limit was reached. */
  account(): Promise<{ id: string } | undefined>;
  source: RequestSource;
}

/** Runs what counts attempts in a transaction of its own; a limit that is reached stands in the audit log. */
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

/** Until every window has room again. */
function secondsUntilAllowed(times: Date[], windows: AttemptWindow[], now: Date): number {
  const newestFirst = times.map((time) => time.getTime()).sort((a, b) => b - a);
  const free = windows.map((window) => (newestFirst[window.times - 1] ?? 0) + window.seconds * 1000);
  return Math.max(1, Math.ceil((Math.max(...free) - now.getTime()) / 1000));
}
