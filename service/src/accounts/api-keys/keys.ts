import { type Permission, permissions } from "@stoa/contract";
import type { Context, RequestSource } from "../../core/context.ts";
import { digestOf } from "../../core/digest.ts";
import { ApiError, invalidRequest } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { record } from "../../platform/audit/audit.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { sendMail } from "../../platform/email/mail.ts";
import { lookupOf, mintKey, prefixOf } from "./api-key.ts";
import { revokedLetter } from "./letters.ts";
import {
  deleteKeysOf,
  findOwner,
  insertKey,
  lockAnyKey,
  type OwnKey,
  revokeKey,
  revokeKeysOf,
} from "./queries.ts";

/** Who does something to a key, as the audit log keeps it. */
export interface Doer {
  actorId: string | null;
  source: RequestSource | null;
}

const OPERATOR: Doer = { actorId: null, source: null };

export const recordKey = (
  ctx: Context,
  tx: Tx,
  by: Doer,
  deed: "created" | "rotated" | "revoked",
  key: { id: string; details?: Record<string, unknown> },
) =>
  record(ctx, tx, {
    ...by,
    action: `api_key.${deed}`,
    target: { type: "api_key", id: toId("key", key.id) },
    ...(key.details && { details: key.details }),
  });

export interface CreateKey {
  userId: string;
  name: string;
  permissions: Permission[];
  expiresAt?: Date | null;
}

/** A key and, this once, its value. */
export interface MadeKey {
  id: string;
  key: string;
  prefix: string;
}

/** Makes a key in the caller's transaction; its value is in this answer and nowhere else. */
export async function makeKey(ctx: Context, tx: Tx, wish: CreateKey): Promise<MadeKey> {
  const { environment } = ctx.config;
  const minted = mintKey(environment);
  const id = ctx.newId();
  await insertKey(tx, {
    id,
    user_id: wish.userId,
    lookup: minted.lookup,
    digest: minted.digest,
    name: wish.name,
    permissions: wish.permissions,
    created_at: ctx.now(),
    expires_at: wish.expiresAt ?? null,
  });
  return { id, key: minted.value, prefix: prefixOf(environment, minted.lookup) };
}

/** Makes a key as the operator wishes. */
export const createKey = (ctx: Context, wish: CreateKey): Promise<{ id: string; key: string }> =>
  ctx.db.transaction().execute(async (tx) => {
    const { id, key } = await makeKey(ctx, tx, wish);
    await recordKey(ctx, tx, OPERATOR, "created", { id, details: { permissions: wish.permissions } });
    return { id: toId("key", id), key };
  });

/** Ends a key in the caller's transaction; false when it was revoked already. */
export async function endKey(ctx: Context, tx: Tx, key: OwnKey, by: Doer): Promise<boolean> {
  if (key.revokedAt) return false;
  await revokeKey(tx, key.id, ctx.now());
  await recordKey(ctx, tx, by, "revoked", { id: key.id });
  return true;
}

/** Ends anybody's key, named by its id or by its value, such as one that was found in public; its owner gets a letter. */
export const revokeAnyKey = (ctx: Context, idOrValue: string) =>
  ctx.db.transaction().execute(async (tx) => {
    const key = await mustFindAny(ctx, tx, idOrValue);
    if (await endKey(ctx, tx, key, OPERATOR)) {
      const { email } = await findOwner(tx, key.userId);
      const prefix = prefixOf(ctx.config.environment, key.lookup);
      await sendMail(ctx, tx, email, revokedLetter({ name: key.name, prefix }));
    }
    return { id: toId("key", key.id), user: toId("usr", key.userId), name: key.name, revoked: true };
  });

async function mustFindAny(ctx: Context, tx: Tx, idOrValue: string): Promise<OwnKey> {
  const { environment } = ctx.config;
  const id = toUuid("key", idOrValue);
  const lookup = lookupOf(idOrValue, environment);
  const key = id
    ? await lockAnyKey(tx, { id })
    : lookup && (await lockAnyKey(tx, { lookup, digest: digestOf(idOrValue) }));
  if (key) return key;
  const why = `No API key of this ${environment} environment has this id or value.`;
  throw new ApiError("API_KEY_NOT_FOUND", why);
}

/** Revokes every key of an account; answers how many. */
export async function revokeAllKeys(ctx: Context, tx: Queries, userId: string): Promise<number> {
  return (await revokeKeysOf(tx, userId, ctx.now())).length;
}

/** Of an account that closes. */
export const forgetKeys = (db: Queries, userId: string) => deleteKeysOf(db, userId);

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
