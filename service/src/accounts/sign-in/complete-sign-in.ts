import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { SESSION_COOKIE } from "../../platform/http/authenticate.ts";
import { type Cookie, DataResponse } from "../../platform/http/route.ts";
import { lockSignInAccount, type SignInAccount } from "../people/credentials.ts";
import { SESSION_SECONDS } from "../sessions/session-token.ts";
import { authenticateSession, endSessions, startSession } from "../sessions/sessions.ts";
import { acceptSecondFactor, hasSecondFactor } from "../two-factor/second-factor.ts";
import { reportFailure } from "./failures.ts";
import { mintOneTimeToken } from "./one-time-tokens.ts";

const CHALLENGE_LIFETIME_MS = 5 * 60_000;

export interface ProvenSignIn {
  user: { id: string; email: string; name: string };
  /** `magic-link`, `password`, `github` or `google`. */
  via: string;
  source: RequestSource;
  /** The browser's current session, which ends even when it is another user's. */
  previousToken: string | undefined;
  /**
   * Throws when the proof no longer holds. Runs in the transaction that starts the session, with the account locked.
   */
  revalidate?: (tx: Tx, account: SignInAccount) => Promise<void>;
}

export interface SignInInput extends ProvenSignIn {
  /** The second factor, when it came with the request. */
  code?: string | undefined;
}

/**
 * The last step of each sign-in. Returns a session token, or throws TWO_FACTOR_REQUIRED with a `challenge` (5 minutes)
 * when the account has a second factor and no code came along.
 */
export async function completeSignIn(ctx: Context, { code, ...entry }: SignInInput): Promise<string> {
  const isCodeGiven = code !== undefined && (await hasSecondFactor(ctx.db, entry.user.id));
  if (isCodeGiven) await mustBeValidCode(ctx, entry, code);
  return startSignedInSession(ctx, entry, isCodeGiven);
}

export async function mustBeValidCode(
  ctx: Context,
  { user, via, source }: ProvenSignIn,
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

type SignInResult = { token: string } | { challenge: string };

/**
 * Always a new session id, so that a planted one is worthless. Ban, password and second factor are checked again while
 * the account is locked, so that no sign-in passes a concurrent change.
 */
export async function startSignedInSession(
  ctx: Context,
  entry: ProvenSignIn,
  isCodeGiven: boolean,
): Promise<string> {
  const { previousToken } = entry;
  const earlier = previousToken === undefined ? null : await authenticateSession(ctx, previousToken);
  const outcome = await ctx.db.transaction().execute(async (tx): Promise<SignInResult> => {
    await mustStillBeAllowed(tx, entry);
    const secondFactor = await hasSecondFactor(tx, entry.user.id);
    if (secondFactor && !isCodeGiven) return { challenge: await mintChallenge(ctx, tx, entry) };
    if (earlier) await endPreviousSession(ctx, tx, earlier, entry.source);
    return { token: await recordAndStartSession(ctx, tx, entry, secondFactor) };
  });
  if ("challenge" in outcome) throw new ApiError("TWO_FACTOR_REQUIRED", undefined, outcome);
  return outcome.token;
}

async function mustStillBeAllowed(tx: Tx, { user, via, revalidate }: ProvenSignIn): Promise<void> {
  const account = await lockSignInAccount(tx, user.id);
  if (!account) throw new ApiError(via === "password" ? "INVALID_CREDENTIALS" : "INVALID_TOKEN");
  await revalidate?.(tx, account);
}

const mintChallenge = (ctx: Context, tx: Tx, { user, via }: ProvenSignIn) =>
  mintOneTimeToken(ctx, tx, {
    purpose: "two-factor",
    userId: user.id,
    data: { via },
    lifetimeMs: CHALLENGE_LIFETIME_MS,
  });

async function recordAndStartSession(
  ctx: Context,
  tx: Tx,
  { user, via, source }: ProvenSignIn,
  secondFactor: boolean,
) {
  const details = { via, secondFactor };
  await recordAudit(ctx, tx, { actorId: user.id, action: "session.started", source, details });
  return startSession(ctx, tx, { user, via, secondFactor, source });
}

async function endPreviousSession(
  ctx: Context,
  tx: Tx,
  { userId, sessionId }: SessionCaller,
  source: RequestSource,
) {
  await endSessions(ctx, tx, userId, { only: sessionId });
  await recordAudit(ctx, tx, {
    actorId: userId,
    action: "session.ended",
    source,
    details: { because: "the browser signed in anew" },
  });
}

/** `sessionToken` is also beside `data`, as the specification asks. */
export const sessionResponse = (sessionToken: string, others: Cookie[] = []) =>
  new DataResponse(
    { sessionToken },
    {
      beside: { sessionToken },
      cookies: [{ name: SESSION_COOKIE, value: sessionToken, maxAgeSeconds: SESSION_SECONDS }, ...others],
    },
  );
