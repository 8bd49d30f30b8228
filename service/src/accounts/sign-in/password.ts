import type { ChangePassword } from "@stoa/contract";
import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { mustBeFresh } from "../../platform/http/fresh-sign-in.ts";
import { revokeAllKeys } from "../api-keys/keys.ts";
import { notifyAccount } from "../notifications/notify-account.ts";
import { revokeGrantsAndSecrets } from "../oauth/cleanup.ts";
import { findSignInAccount, type SignInAccount, setPassword } from "../people/credentials.ts";
import { hashPassword, verifyPassword } from "../people/password-hash.ts";
import { toUserId } from "../people/users.ts";
import { endSessions, mustBeActiveSession } from "../sessions/sessions.ts";
import { countAttempts, releaseAttempts, runWithinLimits } from "./attempts.ts";
import { passwordChangedEmail } from "./emails.ts";
import { reportFailure } from "./failures.ts";
import { validatePassword } from "./password-rules.ts";
import { deleteChallengesOfUser } from "./queries.ts";

/** Sets the first password, too. Ends all other sessions and pending challenges. */
export async function changePassword(
  ctx: Context,
  caller: SessionCaller,
  input: ChangePassword,
  source: RequestSource,
) {
  const account = await findSignInAccount(ctx.db, caller.userId);
  if (!account) throw new ApiError("INVALID_API_KEY");
  validatePassword(input.password, account);
  await mustProveOwnership(ctx, caller, account, input.currentPassword, source);
  const passwordHash = await hashPassword(input.password);
  return ctx.db.transaction().execute(async (tx) => {
    await setPassword(tx, account.id, passwordHash);
    await mustBeActiveSession(tx, caller);
    const sessionsEnded = await endSessions(ctx, tx, account.id, { but: caller.sessionId });
    await deleteChallengesOfUser(tx, account.id);
    const revoked = input.revokeAccess ? await revokeAccess(ctx, tx, account.id) : nothingRevoked;
    const details = { sessionsEnded, ...revoked };
    await recordAudit(ctx, tx, { actorId: account.id, action: "password.changed", source, details });
    const subjectId = toUserId(account.id);
    const occurrence = ctx.newId();
    const notification = { userId: account.id, kind: "password.changed" as const, subjectId, occurrence };
    await notifyAccount(ctx, tx, { ...notification, data: {} }, passwordChangedEmail(ctx, revoked));
    return details;
  });
}

const nothingRevoked = { keysRevoked: 0, grantsRevoked: 0, clientSecretsRevoked: 0 };
export type RevokedAccess = typeof nothingRevoked;

/** Everything besides sessions that acts in the user's name. */
const revokeAccess = async (ctx: Context, tx: Tx, userId: string): Promise<RevokedAccess> => ({
  keysRevoked: await revokeAllKeys(ctx, tx, userId),
  ...(await revokeGrantsAndSecrets(tx, userId)),
});

async function mustProveOwnership(
  ctx: Context,
  caller: SessionCaller,
  account: SignInAccount,
  currentPassword: string | undefined,
  source: RequestSource,
): Promise<void> {
  if (currentPassword === undefined) mustBeFresh(ctx, caller);
  else await mustBeCurrentPassword(ctx, account, currentPassword, source);
}

/** An open session must not allow guessing the password. */
async function mustBeCurrentPassword(
  ctx: Context,
  account: SignInAccount,
  currentPassword: string,
  source: RequestSource,
): Promise<void> {
  const limited = { subject: account.id, account: async () => account, source };
  const attempt = await runWithinLimits(ctx, limited, (tx) =>
    countAttempts(ctx, tx, [["password of an account", account.id]]),
  );
  if (!(await verifyPassword(account.passwordHash, currentPassword))) {
    const { id } = account;
    await reportFailure(ctx, { action: "password.refused", subject: id, accountId: id, source });
    throw ruleViolation("currentPassword", "is not your password");
  }
  await ctx.db.transaction().execute((tx) => releaseAttempts(tx, attempt));
}
