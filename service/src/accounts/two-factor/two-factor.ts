import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { mustBeFresh } from "../../platform/http/fresh-sign-in.ts";
import { lockAccount } from "../people/accounts.ts";
import { isAccountPassword } from "../people/password.ts";
import { findUser, toUserId } from "../people/users.ts";
import {
  clearSecondFactor,
  endSessions,
  markSecondFactor,
  mustBeActiveSession,
} from "../sessions/sessions.ts";
import { digestBackupCode, generateBackupCodes } from "./backup-codes.ts";
import { backupCodesRenewedEmail, twoFactorDisabledEmail, twoFactorEnabledEmail } from "./emails.ts";
import {
  confirmAuthenticator,
  countBackupCodes,
  deleteConfirmedAuthenticator,
  findAuthenticator,
  replaceBackupCodes,
  upsertPendingAuthenticator,
} from "./queries.ts";
import {
  acceptSecondFactor,
  auditLockout,
  countTry,
  findTimeStepOfTry,
  hasSecondFactor,
  notifyOfTwoFactor,
  sealSecret,
} from "./second-factor.ts";
import { generateTotpSecret, renderQrCode, toOtpauthUri } from "./totp.ts";

const alreadyEnabled = () =>
  new ApiError("INVALID_STATE", "Two-factor authentication is on already.", {
    current: "on",
    allowed: ["off"],
  });
const notEnabled = () =>
  new ApiError("INVALID_STATE", "Two-factor authentication is off.", { current: "off", allowed: ["on"] });
const notPending = () =>
  new ApiError("INVALID_STATE", "No authenticator app waits to be confirmed: set one up first.", {
    current: "not set up",
    allowed: ["set up"],
  });
const wrongCode = () => ruleViolation("code", "is wrong, too old, or was used already");

export async function readTwoFactor({ db }: Context, { userId }: SessionCaller) {
  const confirmedAt = (await findAuthenticator(db, userId))?.confirmedAt ?? null;
  return {
    enabled: confirmedAt !== null,
    confirmedAt: confirmedAt?.toISOString() ?? null,
    backupCodesLeft: await countBackupCodes(db, userId),
  };
}

/** The secret has no effect until a code confirms it. */
export async function setUpTwoFactor(ctx: Context, caller: SessionCaller) {
  const { email } = await findUser(ctx, toUserId(caller.userId));
  const secret = generateTotpSecret();
  const isPut = await upsertPendingAuthenticator(ctx.db, {
    userId: caller.userId,
    sealedSecret: sealSecret(ctx, caller.userId, secret),
    createdAt: ctx.now(),
  });
  if (!isPut) throw alreadyEnabled();
  const uri = toOtpauthUri(secret, email);
  return { secret, otpauthUri: uri, qrCode: renderQrCode(uri) };
}

/** No session can start, and none can be ended by a password change, until the transaction commits. */
async function lockAccountAndSession(tx: Tx, caller: SessionCaller): Promise<void> {
  await lockAccount(tx, caller.userId);
  await mustBeActiveSession(tx, caller);
}

/** Ends the other sessions, which have no second factor. */
export async function confirmTwoFactor(
  ctx: Context,
  caller: SessionCaller,
  code: string,
  source: RequestSource,
) {
  const { userId, sessionId } = caller;
  const verified = await verifyPendingCode(ctx, userId, code, source);
  const backupCodes = generateBackupCodes();
  await ctx.db.transaction().execute(async (tx) => {
    await lockAccountAndSession(tx, caller);
    if (!(await confirmAuthenticator(tx, userId, verified))) throw notPending();
    await ctx.idempotencyKey?.bind(tx, toUserId(userId));
    await replaceBackupCodes(tx, userId, backupCodes.map(digestBackupCode));
    await endSessions(ctx, tx, userId, { but: sessionId });
    await markSecondFactor(tx, caller);
    await notifyOfTwoFactor(ctx, tx, userId, { change: "enabled", left: null }, twoFactorEnabledEmail(ctx));
    await recordAudit(ctx, tx, { actorId: userId, action: "two_factor.turned_on", source });
  });
  return { backupCodes };
}

/** Counted and locked like a code at sign-in: a guess here would raise a stolen session to two factors. */
async function verifyPendingCode(ctx: Context, userId: string, code: string, source: RequestSource) {
  const tried = await countTry(ctx, userId, "pending");
  if (!tried) throw (await hasSecondFactor(ctx.db, userId)) ? alreadyEnabled() : notPending();
  const step = findTimeStepOfTry(ctx, userId, tried, code.replace(/\s/g, ""));
  if (step !== null) return { sealedSecret: tried.sealedSecret, step, now: ctx.now() };
  await auditLockout(ctx, userId, tried, source);
  throw wrongCode();
}

async function mustBeValidCode(ctx: Context, { userId }: SessionCaller, code: string, source: RequestSource) {
  if (!(await hasSecondFactor(ctx.db, userId))) throw notEnabled();
  if (!(await acceptSecondFactor(ctx, userId, code, source))) throw wrongCode();
}

export async function renewBackupCodes(
  ctx: Context,
  caller: SessionCaller,
  code: string,
  source: RequestSource,
) {
  await mustBeValidCode(ctx, caller, code, source);
  const backupCodes = generateBackupCodes();
  await ctx.db.transaction().execute(async (tx) => {
    await lockAccountAndSession(tx, caller);
    await ctx.idempotencyKey?.bind(tx, toUserId(caller.userId));
    await replaceBackupCodes(tx, caller.userId, backupCodes.map(digestBackupCode));
    const data = { change: "codes_renewed" as const, left: null };
    await notifyOfTwoFactor(ctx, tx, caller.userId, data, backupCodesRenewedEmail(ctx));
    await recordAudit(ctx, tx, { actorId: caller.userId, action: "two_factor.backup_codes_renewed", source });
  });
  return { backupCodes };
}

/** The code is checked before the password, so that each password guess needs a new code. */
export async function disableTwoFactor(
  ctx: Context,
  caller: SessionCaller,
  { code, password }: { code: string; password?: string | undefined },
  source: RequestSource,
) {
  const { userId } = caller;
  if (password === undefined) mustBeFresh(ctx, caller);
  await mustBeValidCode(ctx, caller, code, source);
  if (password !== undefined && !(await isAccountPassword(ctx, userId, password)))
    throw ruleViolation("password", "is not the account's password");
  await ctx.db.transaction().execute(async (tx) => {
    await lockAccountAndSession(tx, caller);
    if (!(await deleteConfirmedAuthenticator(tx, userId))) throw notEnabled();
    await clearSecondFactor(tx, userId);
    await notifyOfTwoFactor(ctx, tx, userId, { change: "disabled", left: null }, twoFactorDisabledEmail(ctx));
    await recordAudit(ctx, tx, { actorId: userId, action: "two_factor.turned_off", source });
  });
  return { enabled: false as const };
}
