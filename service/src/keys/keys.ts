import { type Permission, permissions } from "@stoa/contract";
import type { Context, KeyCaller } from "../context.ts";
import type { Queries } from "../db/database.ts";
import { invalidRequest } from "../errors.ts";
import { toId } from "../ids.ts";
import { digestOf, isSameDigest, lookupOf, mintKey } from "./api-key.ts";
import {
  deleteKeysOf,
  findKey,
  insertKey,
  type KeyRow,
  revokeKeysNamed,
  revokeKeysOf,
  touchKey,
} from "./queries.ts";

const LAST_USED_EVERY_MS = 60_000;
/** Compared when no key is found, so that a miss costs what a hit costs. */
const NOBODYS_DIGEST = digestOf("");

const isExpired = (key: KeyRow, now: Date) => key.expiresAt !== null && key.expiresAt <= now;

/** Who an API key belongs to; null when it is unknown, revoked, expired or of the other environment. */
export async function identifyKey(ctx: Context, value: string): Promise<KeyCaller | null> {
  const lookup = lookupOf(value, ctx.config.environment);
  if (!lookup) return null;
  const key = await findKey(ctx, lookup);
  const matches = isSameDigest(digestOf(value), key?.digest ?? NOBODYS_DIGEST);
  if (!key || !matches || isExpired(key, ctx.now())) return null;
  noteUse(ctx, key);
  return {
    kind: "key",
    keyId: key.id,
    userId: key.userId,
    role: key.role,
    plan: key.plan,
    quota: key.quota,
    permissions: new Set(key.permissions),
  };
}

/** Written at most once a minute, beside the request: nobody waits for it. */
function noteUse(ctx: Context, key: KeyRow): void {
  const now = ctx.now();
  const before = new Date(now.getTime() - LAST_USED_EVERY_MS);
  if (key.lastUsedAt && key.lastUsedAt > before) return;
  touchKey(ctx, key.id, now, before).catch((error) =>
    ctx.log.warn({ err: error }, "last use of a key not kept"),
  );
}

export interface CreateKey {
  userId: string;
  name: string;
  permissions: Permission[];
  expiresAt?: Date | null;
}

/** Makes a key; its value is in this answer and nowhere else. */
export async function createKey(ctx: Context, wish: CreateKey): Promise<{ id: string; key: string }> {
  const minted = mintKey(ctx.config.environment);
  const id = ctx.newId();
  await insertKey(ctx, {
    id,
    user_id: wish.userId,
    lookup: minted.lookup,
    digest: minted.digest,
    name: wish.name,
    permissions: wish.permissions,
    created_at: ctx.now(),
    expires_at: wish.expiresAt ?? null,
  });
  return { id: toId("key", id), key: minted.value };
}

/** Makes a key in the place of all of that name: what was printed at the last start stops working. */
export async function replaceKey(ctx: Context, wish: CreateKey): Promise<{ id: string; key: string }> {
  await revokeKeysNamed(ctx, wish.userId, wish.name, ctx.now());
  return createKey(ctx, wish);
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
