import { record } from "../audit/audit.ts";
import type { Context, SessionCaller, Source } from "../context.ts";
import type { Tx } from "../db/database.ts";
import { ApiError } from "../errors.ts";
import { SESSION_COOKIE } from "../http/authenticate.ts";
import { Answer } from "../http/route.ts";
import { endSessions, identifySession, startSession } from "../sessions/sessions.ts";
import { SESSION_SECONDS } from "../sessions/token.ts";
import { acceptSecondFactor, hasSecondFactor } from "../two-factor/second-factor.ts";
import { mintOneTimeToken } from "./one-time-tokens.ts";

const CHALLENGE_LIFETIME_MS = 5 * 60_000;

export interface Entry {
  user: { id: string; email: string; name: string };
  /** How they proved who they are: `magic-link`, `password`, `github`, `google`. */
  via: string;
  source: Source;
  /** The session that the browser has so far, whoever's it is: it ends. */
  earlierToken: string | undefined;
  /** Throws when what was proven does not hold any more: in the transaction that starts the session. */
  mustStillHold?: (tx: Tx) => Promise<void>;
}

export interface SignIn extends Entry {
  /** Of the second factor, where it was given along. */
  code?: string | undefined;
}

/**
 * The end of every way in: a session's token, or TWO_FACTOR_REQUIRED with a `challenge` (5 minutes) when the account has a second
 * factor and no code came along. A wrong code is INVALID_CREDENTIALS.
 */
export async function completeSignIn(ctx: Context, { code, ...entry }: SignIn): Promise<string> {
  const secondFactor = await hasSecondFactor(ctx.db, entry.user.id);
  if (secondFactor) {
    if (code === undefined) throw await codeNeeded(ctx, entry);
    await mustBeRightCode(ctx, entry, code);
  }
  return enter(ctx, entry, secondFactor);
}

async function codeNeeded(ctx: Context, { user, via }: Entry): Promise<ApiError> {
  const challenge = await mintOneTimeToken(ctx, ctx.db, {
    purpose: "two-factor",
    userId: user.id,
    data: { via },
    lifetimeMs: CHALLENGE_LIFETIME_MS,
  });
  return new ApiError("TWO_FACTOR_REQUIRED", undefined, { challenge });
}

export async function mustBeRightCode(
  ctx: Context,
  { user, via, source }: Entry,
  code: string,
): Promise<void> {
  if (await acceptSecondFactor(ctx, user.id, code, source)) return;
  await record(ctx, ctx.db, { actorId: user.id, action: "second_factor.failed", source, details: { via } });
  throw new ApiError("INVALID_CREDENTIALS", "The code is wrong, over, or was used before.");
}

/** Starts the session, always under a new id: one that somebody planted in the browser is worth nothing afterwards. */
export async function enter(ctx: Context, entry: Entry, secondFactor: boolean): Promise<string> {
  const { user, via, source, earlierToken } = entry;
  const earlier = earlierToken === undefined ? null : await identifySession(ctx, earlierToken);
  return ctx.db.transaction().execute(async (tx) => {
    await entry.mustStillHold?.(tx);
    if (earlier) await endEarlier(ctx, tx, earlier, source);
    await record(ctx, tx, {
      actorId: user.id,
      action: "session.started",
      source,
      details: { via, secondFactor },
    });
    return startSession(ctx, tx, { user, via, secondFactor, source });
  });
}

async function endEarlier(ctx: Context, tx: Tx, { userId, sessionId }: SessionCaller, source: Source) {
  await endSessions(ctx, tx, userId, { only: sessionId });
  await record(ctx, tx, {
    actorId: userId,
    action: "session.ended",
    source,
    details: { because: "the browser signed in anew" },
  });
}

/** The envelope, a top-level `sessionToken` beside it, and the cookie. */
export const sessionAnswer = (sessionToken: string) =>
  new Answer(
    { sessionToken },
    {
      beside: { sessionToken },
      cookies: [{ name: SESSION_COOKIE, value: sessionToken, maxAgeSeconds: SESSION_SECONDS }],
    },
  );
