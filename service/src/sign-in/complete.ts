import { record } from "../audit/audit.ts";
import type { Context, Source } from "../context.ts";
import { ApiError } from "../errors.ts";
import { SESSION_COOKIE } from "../http/authenticate.ts";
import { Answer } from "../http/route.ts";
import { startSession } from "../sessions/sessions.ts";
import { SESSION_SECONDS } from "../sessions/token.ts";
import { acceptSecondFactor, hasSecondFactor } from "../two-factor/second-factor.ts";
import { mintOneTimeToken } from "./one-time-tokens.ts";

const CHALLENGE_LIFETIME_MS = 5 * 60_000;

export interface SignIn {
  user: { id: string; email: string; name: string };
  /** How they proved who they are: `magic-link`, `password`, `github`, `google`. */
  via: string;
  source: Source;
  /** Of the second factor, where it was given along. */
  code?: string | undefined;
}

/**
 * The end of every way in: a session's token, or TWO_FACTOR_REQUIRED with a `challenge` (5 minutes) when the account has a second
 * factor and no code came along. A wrong code is INVALID_CREDENTIALS.
 */
export async function completeSignIn(ctx: Context, { user, via, source, code }: SignIn): Promise<string> {
  const secondFactor = await hasSecondFactor(ctx.db, user.id);
  if (secondFactor) {
    if (code === undefined) throw await codeNeeded(ctx, user.id, via);
    if (!(await acceptSecondFactor(ctx, user.id, code))) throw new ApiError("INVALID_CREDENTIALS");
  }
  return ctx.db.transaction().execute(async (tx) => {
    await record(ctx, tx, {
      actorId: user.id,
      action: "session.started",
      source,
      details: { via, secondFactor },
    });
    return startSession(ctx, tx, { user, via, secondFactor, source });
  });
}

async function codeNeeded(ctx: Context, userId: string, via: string): Promise<ApiError> {
  const challenge = await mintOneTimeToken(ctx, ctx.db, {
    purpose: "two-factor",
    userId,
    data: { via },
    lifetimeMs: CHALLENGE_LIFETIME_MS,
  });
  return new ApiError("TWO_FACTOR_REQUIRED", undefined, { challenge });
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
