import type { Context, RequestSource } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Queries } from "../../platform/db/database.ts";
import { sealedColumn } from "../../platform/db/sealed-columns.ts";
import type { Email } from "../../platform/email/render-email.ts";
import type { DataOf } from "../notifications/kinds.ts";
import { notifyAccount } from "../notifications/notify-account.ts";
import { toUserId } from "../people/users.ts";
import { digestBackupCode } from "./backup-codes.ts";
import { backupCodeUsedEmail } from "./emails.ts";
import {
  type AuthenticatorState,
  acceptTimeStep,
  type CountedTry,
  consumeBackupCode,
  countBackupCodes,
  deleteAuthenticator,
  findAuthenticator,
  incrementTries,
  resetTries,
} from "./queries.ts";
import { findTimeStep, isTotpCode } from "./totp.ts";

const TRIES = 5;
const LOCKED_MS = 15 * 60_000;

export async function hasSecondFactor(db: Queries, userId: string): Promise<boolean> {
  return Boolean((await findAuthenticator(db, userId))?.confirmedAt);
}

/**
 * Accepts a TOTP code or a backup code, each once. Throws RATE_LIMIT_EXCEEDED while the account is locked after too
 * many wrong codes.
 */
export async function acceptSecondFactor(
  ctx: Context,
  userId: string,
  input: string,
  source: RequestSource | null = null,
): Promise<boolean> {
  const code = input.replace(/[\s-]/g, "");
  const tried = await countTry(ctx, userId, "confirmed");
  if (!tried) return false;
  const isAccepted = isTotpCode(code)
    ? await acceptTotpCode(ctx, userId, tried, code)
    : await acceptBackupCode(ctx, userId, code, source);
  if (!isAccepted) await auditLockout(ctx, userId, tried, source);
  return isAccepted;
}

export async function removeAuthenticator(db: Queries, userId: string): Promise<void> {
  await deleteAuthenticator(db, userId);
}

/** Counts before the code is verified, so that parallel guesses cannot exceed the limit. */
export async function countTry(
  ctx: Context,
  userId: string,
  stage: AuthenticatorState,
): Promise<CountedTry | null> {
  const now = ctx.now();
  const lockedUntil = new Date(now.getTime() + LOCKED_MS);
  const tried = await incrementTries(ctx.db, userId, stage, { now, tries: TRIES, lockedUntil });
  if (tried) return tried;
  const authenticator = await findAuthenticator(ctx.db, userId);
  if (authenticator?.lockedUntil && authenticator.lockedUntil > now)
    throw locked(authenticator.lockedUntil, now);
  return null;
}

function locked(until: Date, now: Date): ApiError {
  const seconds = Math.ceil((until.getTime() - now.getTime()) / 1000);
  return new ApiError(
    "RATE_LIMIT_EXCEEDED",
    "Too many wrong codes: wait before the next one.",
    undefined,
    seconds,
  );
}

/** Audits the lock, which has been in force since the try was counted. */
export async function auditLockout(
  ctx: Context,
  userId: string,
  { tries }: CountedTry,
  source: RequestSource | null,
) {
  if (tries < TRIES) return;
  await recordAudit(ctx, ctx.db, { actorId: userId, action: "two_factor.locked", source });
}

/** Binds a sealed secret to its account. */
const sealContext = (userId: string) => `authenticator|${userId}`;

export const sealedAuthenticators = sealedColumn({
  table: "authenticators",
  column: "sealed_secret",
  key: { user_id: "uuid" },
  bound: { userId: "t.user_id" },
  contextOf: ({ userId }) => sealContext(userId),
});

export const sealSecret = (ctx: Context, userId: string, secret: string): string =>
  ctx.vault.seal(secret, sealContext(userId));

export function findTimeStepOfTry(
  ctx: Context,
  userId: string,
  { sealedSecret }: CountedTry,
  code: string,
): number | null {
  return findTimeStep(ctx.vault.open(sealedSecret, sealContext(userId)), code, ctx.now());
}

async function acceptTotpCode(
  ctx: Context,
  userId: string,
  tried: CountedTry,
  code: string,
): Promise<boolean> {
  const step = findTimeStepOfTry(ctx, userId, tried, code);
  return step !== null && acceptTimeStep(ctx.db, userId, step);
}

export const notifyOfTwoFactor = (
  ctx: Context,
  tx: Queries,
  userId: string,
  data: DataOf<"two_factor.changed">,
  message: Email,
): Promise<void> => {
  const about = { userId, subjectId: toUserId(userId), occurrence: ctx.newId() };
  return notifyAccount(ctx, tx, { ...about, kind: "two_factor.changed", data }, message);
};

async function acceptBackupCode(
  ctx: Context,
  userId: string,
  code: string,
  source: RequestSource | null,
): Promise<boolean> {
  return ctx.db.transaction().execute(async (tx) => {
    if (!(await consumeBackupCode(tx, userId, digestBackupCode(code), ctx.now()))) return false;
    await resetTries(tx, userId);
    const left = await countBackupCodes(tx, userId);
    const data = { change: "code_used" as const, left: String(left) };
    await notifyOfTwoFactor(ctx, tx, userId, data, backupCodeUsedEmail(ctx, left));
    await recordAudit(ctx, tx, {
      actorId: userId,
      action: "two_factor.backup_code_used",
      source,
      details: { left },
    });
    return true;
  });
}
