import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { record } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { sendMail } from "../../platform/email/mail.ts";
import { mustBeFresh } from "../../platform/http/fresh-sign-in.ts";
import { lockAccount } from "../people/accounts.ts";
import { isPasswordOf } from "../people/password.ts";
import { findUser, toUserId } from "../people/users.ts";
import { endSessions, forgetSecondFactor, mustStillBeIn, noteSecondFactor } from "../sessions/sessions.ts";
import { newSecret, otpauthUri, qrCodeOf } from "./app-code.ts";
import { digestOfCode, newBackupCodes } from "./backup-codes.ts";
import { newBackupCodesLetter, turnedOffLetter, turnedOnLetter } from "./letters.ts";
import {
  confirmAuthenticator,
  countBackupCodes,
  eraseAuthenticator,
  findAuthenticator,
  putAuthenticator,
  replaceBackupCodes,
} from "./queries.ts";
import {
  acceptSecondFactor,
  hasSecondFactor,
  noteWrong,
  sealSecret,
  stepOfTried,
  takeTry,
} from "./second-factor.ts";

const isOn = () =>
  new ApiError("INVALID_STATE", "Two-factor authentication is on already.", {
    current: "on",
    allowed: ["off"],
  });
const isOff = () =>
  new ApiError("INVALID_STATE", "Two-factor authentication is off.", { current: "off", allowed: ["on"] });
const notSetUp = () =>
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

/** Makes a secret for an app; it counts for nothing until a code of it was given. */
export async function setUpTwoFactor(ctx: Context, caller: SessionCaller) {
  const { email } = await findUser(ctx, toUserId(caller.userId));
  const secret = newSecret();
  const isPut = await putAuthenticator(ctx.db, {
    user_id: caller.userId,
    sealed_secret: sealSecret(ctx, caller.userId, secret),
    created_at: ctx.now(),
  });
  if (!isPut) throw isOn();
  const uri = otpauthUri(secret, email);
  return { secret, otpauthUri: uri, qrCode: qrCodeOf(uri) };
}

/** Nobody begins a session, and no change of the password ends this one, between what is asked here and the commit. */
async function holdAccount(tx: Tx, caller: SessionCaller): Promise<void> {
  await lockAccount(tx, caller.userId);
  await mustStillBeIn(tx, caller);
}

/** Turns it on: whoever else is signed in must sign in anew, with a code. */
export async function confirmTwoFactor(
  ctx: Context,
  caller: SessionCaller,
  code: string,
  source: RequestSource,
) {
  const { userId, sessionId } = caller;
  const { email } = await findUser(ctx, toUserId(userId));
  const judged = await judgePending(ctx, userId, code, source);
  const backupCodes = newBackupCodes();
  await ctx.db.transaction().execute(async (tx) => {
    await holdAccount(tx, caller);
    if (!(await confirmAuthenticator(tx, userId, judged))) throw notSetUp();
    await ctx.idempotencyKey?.bind(tx, toUserId(userId));
    await replaceBackupCodes(tx, userId, backupCodes.map(digestOfCode));
    await endSessions(ctx, tx, userId, { but: sessionId });
    await noteSecondFactor(tx, caller);
    await sendMail(ctx, tx, email, turnedOnLetter(ctx));
    await record(ctx, tx, { actorId: userId, action: "two_factor.turned_on", source });
  });
  return { backupCodes };
}

/** Counted and locked like a code at sign-in: whoever guesses here would turn a stolen session into one with two factors. */
async function judgePending(ctx: Context, userId: string, code: string, source: RequestSource) {
  const tried = await takeTry(ctx, userId, "pending");
  if (!tried) throw (await hasSecondFactor(ctx.db, userId)) ? isOn() : notSetUp();
  const step = stepOfTried(ctx, userId, tried, code.replace(/\s/g, ""));
  if (step !== null) return { sealedSecret: tried.sealedSecret, step, now: ctx.now() };
  await noteWrong(ctx, userId, tried, source);
  throw wrongCode();
}

async function mustGiveCode(ctx: Context, { userId }: SessionCaller, code: string, source: RequestSource) {
  if (!(await hasSecondFactor(ctx.db, userId))) throw isOff();
  if (!(await acceptSecondFactor(ctx, userId, code, source))) throw wrongCode();
}

export async function renewBackupCodes(
  ctx: Context,
  caller: SessionCaller,
  code: string,
  source: RequestSource,
) {
  const { email } = await findUser(ctx, toUserId(caller.userId));
  await mustGiveCode(ctx, caller, code, source);
  const backupCodes = newBackupCodes();
  await ctx.db.transaction().execute(async (tx) => {
    await holdAccount(tx, caller);
    await ctx.idempotencyKey?.bind(tx, toUserId(caller.userId));
    await replaceBackupCodes(tx, caller.userId, backupCodes.map(digestOfCode));
    await sendMail(ctx, tx, email, newBackupCodesLetter(ctx));
    await record(ctx, tx, { actorId: caller.userId, action: "two_factor.backup_codes_renewed", source });
  });
  return { backupCodes };
}

/** The code is judged before the password: whoever guesses passwords here needs a new code for each guess. */
export async function removeTwoFactor(
  ctx: Context,
  caller: SessionCaller,
  { code, password }: { code: string; password?: string | undefined },
  source: RequestSource,
) {
  const { userId } = caller;
  if (password === undefined) mustBeFresh(ctx, caller);
  const { email } = await findUser(ctx, toUserId(userId));
  await mustGiveCode(ctx, caller, code, source);
  if (password !== undefined && !(await isPasswordOf(ctx, userId, password)))
    throw ruleViolation("password", "is not the account's password");
  await ctx.db.transaction().execute(async (tx) => {
    await holdAccount(tx, caller);
    if (!(await eraseAuthenticator(tx, userId))) throw isOff();
    await forgetSecondFactor(tx, userId);
    await sendMail(ctx, tx, email, turnedOffLetter(ctx));
    await record(ctx, tx, { actorId: userId, action: "two_factor.turned_off", source });
  });
  return { enabled: false as const };
}
