import { type Permission, permissions } from "@stoa/contract";
import type { Context } from "../context.ts";
import type { Queries } from "../db/database.ts";
import { invalidRequest } from "../errors.ts";
import { toId } from "../ids.ts";
import { mintKey } from "./api-key.ts";
import { deleteKeysOf, insertKey, revokeKeysNamed, revokeKeysOf } from "./queries.ts";

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
