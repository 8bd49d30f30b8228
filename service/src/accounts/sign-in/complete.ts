import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { record } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { SESSION_COOKIE } from "../../platform/http/authenticate.ts";
import { Answer, type Cookie } from "../../platform/http/route.ts";
import { type Entrant, holdEntrant } from "../people/credentials.ts";
import { endSessions, identifySession, startSession } from "../sessions/sessions.ts";
import { SESSION_SECONDS } from "../sessions/token.ts";
import { acceptSecondFactor, hasSecondFactor } from "../two-factor/second-factor.ts";
import { reportFailure } from "./failures.ts";
import { mintOneTimeToken } from "./one-time-tokens.ts";

const CHALLENGE_LIFETIME_MS = 5 * 60_000;

export interface Entry {
  user: { id: string; email: string; name: string };
  /** How they proved who they are: `magic-link`, `password`, `github`, `google`. */
  via: string;
  source: RequestSource;
  /** The session that the browser has so far, whoever's it is: it ends. */
  earlierToken: string | undefined;
  /** Throws when what was proven does not hold any more: in the transaction that starts the session, the account held. */
  mustStillHold?: (tx: Tx, account: Entrant) => Promise<void>;
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
  const isCodeGiven = code !== undefined && (await hasSecondFactor(ctx.db, entry.user.id));
  if (isCodeGiven) await mustBeRightCode(ctx, entry, code);
  return enter(ctx, entry, isCodeGiven);
}

export async function mustBeRightCode(
  ctx: Context,
  { user, via, source }: Entry,
  code: string,
): Promise<void> {
  if (await acceptSecondFactor(ctx, user.id, code, source)) return;
  await reportFailure(ctx, {
    action: "sign_in.code_refused",
    subject: user.id,
    accountId: user.id,
    source,
    details: { via },
  });
  throw new ApiError("INVALID_CREDENTIALS", "The code is wrong, over, or was used before.");
}

type Outcome = { token: string } | { challenge: string };

/**
 * Starts the session, always under a new id: one that somebody planted in the browser is worth nothing afterwards. What may
 * have changed since the proof (ban, password, second factor) is asked again while the account is held, so that nobody slips past a change.
 */
export async function enter(ctx: Context, entry: Entry, isCodeGiven: boolean): Promise<string> {
  const { earlierToken } = entry;
  const earlier = earlierToken === undefined ? null : await identifySession(ctx, earlierToken);
  const outcome = await ctx.db.transaction().execute(async (tx): Promise<Outcome> => {
    await mustStillEnter(tx, entry);
    const secondFactor = await hasSecondFactor(tx, entry.user.id);
    if (secondFactor && !isCodeGiven) return { challenge: await mintChallenge(ctx, tx, entry) };
    if (earlier) await endEarlier(ctx, tx, earlier, entry.source);
    return { token: await start(ctx, tx, entry, secondFactor) };
  });
  if ("challenge" in outcome) throw new ApiError("TWO_FACTOR_REQUIRED", undefined, outcome);
  return outcome.token;
}

async function mustStillEnter(tx: Tx, { user, via, mustStillHold }: Entry): Promise<void> {
  const account = await holdEntrant(tx, user.id);
  if (!account) throw new ApiError(via === "password" ? "INVALID_CREDENTIALS" : "INVALID_TOKEN");
  await mustStillHold?.(tx, account);
}

const mintChallenge = (ctx: Context, tx: Tx, { user, via }: Entry) =>
  mintOneTimeToken(ctx, tx, {
    purpose: "two-factor",
    userId: user.id,
    data: { via },
    lifetimeMs: CHALLENGE_LIFETIME_MS,
  });

async function start(ctx: Context, tx: Tx, { user, via, source }: Entry, secondFactor: boolean) {
  const details = { via, secondFactor };
  await record(ctx, tx, { actorId: user.id, action: "session.started", source, details });
  return startSession(ctx, tx, { user, via, secondFactor, source });
}

async function endEarlier(ctx: Context, tx: Tx, { userId, sessionId }: SessionCaller, source: RequestSource) {
  await endSessions(ctx, tx, userId, { only: sessionId });
  await record(ctx, tx, {
    actorId: userId,
    action: "session.ended",
    source,
    details: { because: "the browser signed in anew" },
  });
}

/** The envelope, a top-level `sessionToken` beside it, and the cookie; others may come along. */
export const sessionAnswer = (sessionToken: string, others: Cookie[] = []) =>
  new Answer(
    { sessionToken },
    {
      beside: { sessionToken },
      cookies: [{ name: SESSION_COOKIE, value: sessionToken, maxAgeSeconds: SESSION_SECONDS }, ...others],
    },
  );
