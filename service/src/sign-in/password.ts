import type { ChangePassword } from "@stoa/contract";
import { record } from "../audit/audit.ts";
import type { Context, SessionCaller, Source } from "../context.ts";
import { ApiError, ruleBroken } from "../errors.ts";
import { sendMail } from "../mail/mail.ts";
import { type Entrant, entrantById, setPassword } from "../people/credentials.ts";
import { hashPassword, passwordFits } from "../people/password-hash.ts";
import { mustBeFresh } from "../sessions/fresh.ts";
import { endSessions, mustStillBeIn } from "../sessions/sessions.ts";
import { countAttempts, giveBack } from "./attempts.ts";
import { passwordChangedLetter } from "./letters.ts";
import { mustBeGoodPassword } from "./password-rules.ts";
import { deleteChallengesOf } from "./queries.ts";

/** Sets a password, the first one too. Whoever came in elsewhere, or is about to, is out. */
export async function changePassword(
  ctx: Context,
  caller: SessionCaller,
  wish: ChangePassword,
  source: Source,
) {
  const account = await entrantById(ctx.db, caller.userId);
  if (!account) throw new ApiError("INVALID_API_KEY");
  mustBeGoodPassword(wish.password, account.email);
  await mustBeOwner(ctx, caller, account, wish.currentPassword);
  const passwordHash = await hashPassword(wish.password);
  return ctx.db.transaction().execute(async (tx) => {
    await setPassword(tx, account.id, passwordHash);
    await mustStillBeIn(tx, caller);
    const sessionsEnded = await endSessions(ctx, tx, account.id, { but: caller.sessionId });
    await deleteChallengesOf(tx, account.id);
    await record(ctx, tx, {
      actorId: account.id,
      action: "password.changed",
      source,
      details: { sessionsEnded },
    });
    await sendMail(ctx, tx, account.email, passwordChangedLetter(ctx));
    return { sessionsEnded };
  });
}

async function mustBeOwner(
  ctx: Context,
  caller: SessionCaller,
  account: Entrant,
  currentPassword: string | undefined,
): Promise<void> {
  if (currentPassword === undefined) mustBeFresh(ctx, caller);
  else await mustBePassword(ctx, account, currentPassword);
}

/** A session that was left open must not be a place to guess the password at. */
async function mustBePassword(ctx: Context, account: Entrant, currentPassword: string): Promise<void> {
  const attempt = await ctx.db
    .transaction()
    .execute((tx) => countAttempts(ctx, tx, [["password of an account", account.id]]));
  if (!(await passwordFits(account.passwordHash, currentPassword)))
    throw ruleBroken("currentPassword", "is not your password");
  await ctx.db.transaction().execute((tx) => giveBack(tx, attempt));
}
