import type { ChangePassword } from "@stoa/contract";
import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { record } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { sendMail } from "../../platform/email/mail.ts";
import { mustBeFresh } from "../../platform/http/fresh-sign-in.ts";
import { revokeAllKeys } from "../api-keys/keys.ts";
import { revokeGrantsAndSecrets } from "../oauth/forgetting.ts";
import { type Entrant, entrantById, setPassword } from "../people/credentials.ts";
import { hashPassword, passwordFits } from "../people/password-hash.ts";
import { endSessions, mustStillBeIn } from "../sessions/sessions.ts";
import { countAttempts, giveBack, withinLimits } from "./attempts.ts";
import { reportFailure } from "./failures.ts";
import { passwordChangedLetter } from "./letters.ts";
import { mustBeGoodPassword } from "./password-rules.ts";
import { deleteChallengesOf } from "./queries.ts";

/** Sets a password, the first one too. Whoever came in elsewhere, or is about to, is out. */
export async function changePassword(
  ctx: Context,
  caller: SessionCaller,
  wish: ChangePassword,
  source: RequestSource,
) {
  const account = await entrantById(ctx.db, caller.userId);
  if (!account) throw new ApiError("INVALID_API_KEY");
  mustBeGoodPassword(wish.password, account);
  await mustBeOwner(ctx, caller, account, wish.currentPassword, source);
  const passwordHash = await hashPassword(wish.password);
  return ctx.db.transaction().execute(async (tx) => {
    await setPassword(tx, account.id, passwordHash);
    await mustStillBeIn(tx, caller);
    const sessionsEnded = await endSessions(ctx, tx, account.id, { but: caller.sessionId });
    await deleteChallengesOf(tx, account.id);
    const revoked = wish.revokeAccess ? await revokeAccess(ctx, tx, account.id) : nothingRevoked;
    const details = { sessionsEnded, ...revoked };
    await record(ctx, tx, { actorId: account.id, action: "password.changed", source, details });
    await sendMail(ctx, tx, account.email, passwordChangedLetter(ctx, revoked));
    return details;
  });
}

const nothingRevoked = { keysRevoked: 0, grantsRevoked: 0, clientSecretsRevoked: 0 };
export type RevokedAccess = typeof nothingRevoked;

/** Everything besides sessions that acts in the account's name, whoever created it. */
const revokeAccess = async (ctx: Context, tx: Tx, userId: string): Promise<RevokedAccess> => ({
  keysRevoked: await revokeAllKeys(ctx, tx, userId),
  ...(await revokeGrantsAndSecrets(tx, userId)),
});

async function mustBeOwner(
  ctx: Context,
  caller: SessionCaller,
  account: Entrant,
  currentPassword: string | undefined,
  source: RequestSource,
): Promise<void> {
  if (currentPassword === undefined) mustBeFresh(ctx, caller);
  else await mustBePassword(ctx, account, currentPassword, source);
}

/** A session that was left open must not be a place to guess the password at. */
async function mustBePassword(
  ctx: Context,
  account: Entrant,
  currentPassword: string,
  source: RequestSource,
): Promise<void> {
  const limited = { subject: account.id, account: async () => account, source };
  const attempt = await withinLimits(ctx, limited, (tx) =>
    countAttempts(ctx, tx, [["password of an account", account.id]]),
  );
  if (!(await passwordFits(account.passwordHash, currentPassword))) {
    const { id } = account;
    await reportFailure(ctx, { action: "password.refused", subject: id, accountId: id, source });
    throw ruleViolation("currentPassword", "is not your password");
  }
  await ctx.db.transaction().execute((tx) => giveBack(tx, attempt));
}
