import { hasAdmin, updateAccount } from "../../accounts/people/accounts.ts";
import { toUserId } from "../../accounts/people/users.ts";
import { authenticateSession } from "../../accounts/sessions/sessions.ts";
import {
  invalidateOneTimeTokens,
  mintOneTimeToken,
  redeemOneTimeToken,
} from "../../accounts/sign-in/one-time-tokens.ts";
import { hasSecondFactor } from "../../accounts/two-factor/second-factor.ts";
import type { Context, SessionCaller } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import { SESSION_COOKIE } from "../../platform/http/authenticate.ts";
import type { RequestInfo } from "../../platform/http/route.ts";

const LINK_LIFETIME_MS = 30 * 60_000;

/** Returns a link that makes the signed-in user the first administrator; null when there is one. Invalidates earlier links. */
export function createFirstAdminLink(ctx: Context): Promise<string | null> {
  return ctx.db.transaction().execute(async (tx) => {
    await invalidateOneTimeTokens(ctx, tx, "first-admin");
    if (await hasAdmin(tx)) return null;
    const token = await mintOneTimeToken(ctx, tx, { purpose: "first-admin", lifetimeMs: LINK_LIFETIME_MS });
    return `${ctx.links.origin()}/auth/first-admin#token=${token}`;
  });
}

/** The token proves that the user can read the server's output; the session identifies the user. */
async function mustBeSignedIn(
  ctx: Context,
  { bearer, cookies }: Pick<RequestInfo, "bearer" | "cookies">,
): Promise<SessionCaller> {
  const token = bearer ?? cookies[SESSION_COOKIE];
  const caller = token ? await authenticateSession(ctx, token) : null;
  if (!caller) throw new ApiError("INVALID_SESSION", "Sign in first, then open the link again.");
  return caller;
}

/** Of parallel calls, one succeeds. */
export async function becomeFirstAdmin(
  ctx: Context,
  token: string,
  facts: Pick<RequestInfo, "bearer" | "cookies" | "source">,
) {
  const { userId } = await mustBeSignedIn(ctx, facts);
  await ctx.db.transaction().execute(async (tx) => {
    // Locks the row of the only valid link, so that a second call finds it used.
    await redeemOneTimeToken(ctx, tx, token, ["first-admin"]);
    if (await hasAdmin(tx)) throw new ApiError("INVALID_STATE", "There is already an administrator.");
    await updateAccount(tx, userId, { role: "admin" });
    const target = { type: "user", id: toUserId(userId) };
    const details = { to: { role: "admin" }, by: "first-admin link" };
    await recordAudit(ctx, tx, {
      actorId: userId,
      action: "user.changed",
      target,
      source: facts.source,
      details,
    });
  });
  const enabled = await hasSecondFactor(ctx.db, userId);
  return {
    id: toUserId(userId),
    role: "admin" as const,
    twoFactor: { enabled },
    message: enabled
      ? "You are the administrator. Sign in with two factors to act as one."
      : "You are the administrator. Set up two-factor authentication to act as one.",
  };
}
