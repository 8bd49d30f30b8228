import type { RotatedApiKey } from "@stoa/contract";
import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { HOUR_MS, toLongDate } from "../../core/dates.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { notifyAccount } from "../notifications/notify-account.ts";
import { toKeyPrefix } from "./api-key.ts";
import { keyRotatedEmail } from "./emails.ts";
import { auditKeyAction, createKey } from "./keys.ts";
import { lockOwnKey, toKeyStatus, toNewApiKey } from "./own-keys.ts";
import { lockOwner, markKeyReplaced, type OwnKey } from "./queries.ts";

/** Not subject to the limit of keys: rotation must never be blocked. */
export const rotateKey = (
  ctx: Context,
  { userId }: SessionCaller,
  input: { keyId: string; graceHours: number },
  source: RequestSource,
): Promise<RotatedApiKey> =>
  ctx.db.transaction().execute(async (tx) => {
    // The account is locked before its keys, as in createOwnKey.
    await lockOwner(tx, userId);
    const old = await lockOwnKey(tx, userId, input.keyId);
    mustBeActive(ctx, old);
    const { name, permissions } = old;
    const key = { name, permissions, expiresAt: renewExpiry(old, ctx.now()) };
    const oldExpiresAt = toGraceEnd(old, ctx.now(), input.graceHours);
    const made = await createKey(ctx, tx, { userId, ...key });
    await ctx.idempotencyKey?.bind(tx, toId("key", made.id));
    await markKeyReplaced(tx, old.id, ctx.now(), oldExpiresAt);
    const details = { replacedBy: toId("key", made.id), graceHours: input.graceHours };
    await auditKeyAction(ctx, tx, { actorId: userId, source }, "rotated", { id: old.id, details });
    const prefix = toKeyPrefix(ctx.config.environment, old.lookup);
    const notification = {
      userId,
      kind: "api_key.rotated" as const,
      subjectId: toId("key", old.id),
      data: { name, expiresAt: toLongDate(oldExpiresAt) },
    };
    const message = keyRotatedEmail(ctx, { name, prefix, expiresAt: oldExpiresAt });
    await notifyAccount(ctx, tx, notification, message);
    const replaced = { id: toId("key", old.id), expiresAt: oldExpiresAt.toISOString() };
    return { ...toNewApiKey(made, key), replaced };
  });

function mustBeActive(ctx: Context, key: OwnKey): void {
  const current = toKeyStatus(key, ctx.now());
  if (current === "active") return;
  throw new ApiError("INVALID_STATE", `The key is ${current}; only an active one can be replaced.`, {
    current,
    allowed: ["active"],
  });
}

/** As long as the old key's lifetime. */
const renewExpiry = ({ createdAt, expiresAt }: OwnKey, now: Date) =>
  expiresAt && new Date(now.getTime() + expiresAt.getTime() - createdAt.getTime());

function toGraceEnd({ expiresAt }: OwnKey, now: Date, graceHours: number): Date {
  const end = new Date(now.getTime() + graceHours * HOUR_MS);
  return expiresAt && expiresAt < end ? expiresAt : end;
}
