import { type Permission, permissions } from "@stoa/contract";
import type { Context, RequestSource } from "../../core/context.ts";
import { digestOf } from "../../core/digest.ts";
import { ApiError, invalidRequest } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { notifyAccount } from "../notifications/notify-account.ts";
import { mintKey, parseKeyLookup, toKeyPrefix } from "./api-key.ts";
import { keyRevokedEmail } from "./emails.ts";
import {
  deleteKeysOfUser,
  insertKey,
  lockAnyKey,
  type OwnKey,
  revokeKey,
  revokeKeysOfUser,
} from "./queries.ts";

export interface AuditActor {
  actorId: string | null;
  source: RequestSource | null;
}

const OPERATOR: AuditActor = { actorId: null, source: null };

export const auditKeyAction = (
  ctx: Context,
  tx: Tx,
  by: AuditActor,
  verb: "created" | "renamed" | "rotated" | "revoked",
  key: { id: string; details?: Record<string, unknown> },
) =>
  recordAudit(ctx, tx, {
    ...by,
    action: `api_key.${verb}`,
    target: { type: "api_key", id: toId("key", key.id) },
    ...(key.details && { details: key.details }),
  });

export interface CreateKeyInput {
  userId: string;
  name: string;
  permissions: Permission[];
  expiresAt?: Date | null;
}

/** The value of the key is here once and is never stored. */
export interface CreatedKey {
  id: string;
  key: string;
  prefix: string;
}

/** Runs in the caller's transaction. */
export async function createKey(ctx: Context, tx: Tx, input: CreateKeyInput): Promise<CreatedKey> {
  const { environment } = ctx.config;
  const minted = mintKey(environment);
  const id = ctx.newId();
  await insertKey(tx, {
    id,
    userId: input.userId,
    lookup: minted.lookup,
    digest: minted.digest,
    name: input.name,
    permissions: input.permissions,
    createdAt: ctx.now(),
    expiresAt: input.expiresAt ?? null,
  });
  return { id, key: minted.value, prefix: toKeyPrefix(environment, minted.lookup) };
}

export const createKeyAsOperator = (
  ctx: Context,
  input: CreateKeyInput,
): Promise<{ id: string; key: string }> =>
  ctx.db.transaction().execute(async (tx) => {
    const { id, key } = await createKey(ctx, tx, input);
    await auditKeyAction(ctx, tx, OPERATOR, "created", { id, details: { permissions: input.permissions } });
    return { id: toId("key", id), key };
  });

/** Runs in the caller's transaction. Returns false when the key was revoked before. */
export async function revokeLockedKey(ctx: Context, tx: Tx, key: OwnKey, by: AuditActor): Promise<boolean> {
  if (key.revokedAt) return false;
  await revokeKey(tx, key.id, ctx.now());
  await auditKeyAction(ctx, tx, by, "revoked", { id: key.id });
  return true;
}

/** For a key that was found in public: by id or by value. The owner gets an email. */
export const revokeKeyAsOperator = (ctx: Context, idOrValue: string) =>
  ctx.db.transaction().execute(async (tx) => {
    const key = await mustLockAnyKey(ctx, tx, idOrValue);
    if (await revokeLockedKey(ctx, tx, key, OPERATOR)) {
      const { userId, name } = key;
      const prefix = toKeyPrefix(ctx.config.environment, key.lookup);
      const notification = { userId, kind: "api_key.revoked" as const, subjectId: toId("key", key.id) };
      await notifyAccount(ctx, tx, { ...notification, data: { name } }, keyRevokedEmail({ name, prefix }));
    }
    return { id: toId("key", key.id), user: toId("usr", key.userId), name: key.name, revoked: true };
  });

async function mustLockAnyKey(ctx: Context, tx: Tx, idOrValue: string): Promise<OwnKey> {
  const { environment } = ctx.config;
  const id = toUuid("key", idOrValue);
  const lookup = parseKeyLookup(idOrValue, environment);
  const key = id
    ? await lockAnyKey(tx, { id })
    : lookup && (await lockAnyKey(tx, { lookup, digest: digestOf(idOrValue) }));
  if (key) return key;
  const why = `No API key of this ${environment} environment has this id or value.`;
  throw new ApiError("API_KEY_NOT_FOUND", why);
}

/** Returns the number of revoked keys. */
export async function revokeAllKeys(ctx: Context, tx: Queries, userId: string): Promise<number> {
  return (await revokeKeysOfUser(tx, userId, ctx.now())).length;
}

/** On account closed. */
export const deleteAllKeys = (db: Queries, userId: string) => deleteKeysOfUser(db, userId);

/** `all`, or permission names separated by commas. */
export function parsePermissions(text: string): Permission[] {
  if (text === "all") return [...permissions];
  const names = text.split(",").map((name) => name.trim());
  const unknown = names.find((name) => !(permissions as readonly string[]).includes(name));
  if (unknown !== undefined) {
    throw invalidRequest("permissions", `"${unknown}" is not one of ${permissions.join(", ")} or all`);
  }
  return names as Permission[];
}
