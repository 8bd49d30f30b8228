import {
  type ApiKey,
  type ApiKeyStatus,
  type CreateApiKey,
  type NewApiKey,
  type Permission,
  permissions,
} from "@stoa/contract";
import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { ApiError, invalidRequest } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import type { Tx } from "../../platform/db/database.ts";
import { mapPage, type Paging } from "../../platform/db/paging.ts";
import { notifyAccount } from "../notifications/notify-account.ts";
import { toKeyPrefix } from "./api-key.ts";
import { keyCreatedEmail } from "./emails.ts";
import { auditKeyAction, type CreatedKey, createKey, revokeLockedKey } from "./keys.ts";
import { countValidKeys, listKeys, lockKey, lockOwner, type OwnKey, renameKey } from "./queries.ts";

const MAX_VALID_KEYS = 25;
const MAX_YEARS = 5;
/** With one of these, a stolen key costs its owner money. */
const SPENDING_PERMISSIONS: Permission[] = ["purchases:write", "ai:execute"];

export function toKeyStatus(key: OwnKey, now: Date): ApiKeyStatus {
  if (key.revokedAt) return "revoked";
  if (key.expiresAt && key.expiresAt <= now) return "expired";
  return key.replacedAt ? "replaced" : "active";
}

const toPermissionMap = (granted: Permission[]) =>
  Object.fromEntries(permissions.map((name) => [name, granted.includes(name)])) as ApiKey["permissions"];

const toApiKey = (ctx: Context, key: OwnKey): ApiKey => ({
  id: toId("key", key.id),
  name: key.name,
  prefix: toKeyPrefix(ctx.config.environment, key.lookup),
  permissions: toPermissionMap(key.permissions),
  status: toKeyStatus(key, ctx.now()),
  createdAt: key.createdAt.toISOString(),
  expiresAt: key.expiresAt?.toISOString() ?? null,
  lastUsedAt: key.lastUsedAt?.toISOString() ?? null,
  revokedAt: key.revokedAt?.toISOString() ?? null,
});

export const toNewApiKey = (
  { id, key }: CreatedKey,
  { name, permissions: granted, expiresAt }: Pick<OwnKey, "name" | "permissions" | "expiresAt">,
): NewApiKey => ({
  id: toId("key", id),
  name,
  permissions: toPermissionMap(granted),
  key,
  expiresAt: expiresAt?.toISOString() ?? null,
});

export async function listOwnKeys(ctx: Context, { userId }: SessionCaller, paging: Paging) {
  return mapPage(await listKeys(ctx.db, userId, paging), (key) => toApiKey(ctx, key));
}

function parseExpiry(ctx: Context, text: string | null): Date | null {
  if (text === null) return null;
  const expiresAt = new Date(text);
  const latest = new Date(ctx.now());
  latest.setUTCFullYear(latest.getUTCFullYear() + MAX_YEARS);
  if (expiresAt <= ctx.now()) throw invalidRequest("expiresAt", "must be in the future");
  if (expiresAt > latest) throw invalidRequest("expiresAt", `must be at most ${MAX_YEARS} years ahead`);
  return expiresAt;
}

export async function createOwnKey(
  ctx: Context,
  { userId }: SessionCaller,
  input: CreateApiKey,
  source: RequestSource,
): Promise<NewApiKey> {
  const granted = permissions.filter((permission) => input.permissions[permission]);
  const key = { name: input.name, permissions: granted, expiresAt: parseExpiry(ctx, input.expiresAt) };
  return ctx.db.transaction().execute(async (tx) => {
    await lockOwner(tx, userId);
    const { count } = await countValidKeys(tx, userId, ctx.now());
    if (count >= MAX_VALID_KEYS) throw tooManyKeys();
    const made = await createKey(ctx, tx, { userId, ...key });
    await ctx.idempotencyKey?.bind(tx, toId("key", made.id));
    const details = { permissions: granted };
    await auditKeyAction(ctx, tx, { actorId: userId, source }, "created", { id: made.id, details });
    const canSpend = SPENDING_PERMISSIONS.some((permission) => granted.includes(permission));
    const message = keyCreatedEmail(ctx, { name: key.name, prefix: made.prefix, canSpend });
    const subjectId = toId("key", made.id);
    await notifyAccount(
      ctx,
      tx,
      { userId, kind: "api_key.created", subjectId, data: { name: key.name } },
      message,
    );
    return toNewApiKey(made, key);
  });
}

const tooManyKeys = () =>
  new ApiError(
    "VALIDATION_ERROR",
    `An account may have ${MAX_VALID_KEYS} API keys that work. Revoke one that nothing uses.`,
    { limit: MAX_VALID_KEYS },
  );

export async function lockOwnKey(tx: Tx, userId: string, keyId: string): Promise<OwnKey> {
  const id = toUuid("key", keyId);
  const key = id && (await lockKey(tx, userId, id));
  if (!key) throw new ApiError("API_KEY_NOT_FOUND");
  return key;
}

export const renameOwnKey = (
  ctx: Context,
  { userId }: SessionCaller,
  { keyId, name }: { keyId: string; name: string },
  source: RequestSource,
) =>
  ctx.db.transaction().execute(async (tx) => {
    const key = await lockOwnKey(tx, userId, keyId);
    if (key.name !== name) {
      await renameKey(tx, key.id, name);
      await auditKeyAction(ctx, tx, { actorId: userId, source }, "renamed", { id: key.id });
    }
    return toApiKey(ctx, { ...key, name });
  });

export const revokeOwnKey = (ctx: Context, { userId }: SessionCaller, keyId: string, source: RequestSource) =>
  ctx.db.transaction().execute(async (tx) => {
    const key = await lockOwnKey(tx, userId, keyId);
    const isNew = await revokeLockedKey(ctx, tx, key, { actorId: userId, source });
    return toApiKey(ctx, isNew ? { ...key, revokedAt: ctx.now() } : key);
  });
