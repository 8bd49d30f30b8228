import type { Permission, Plan, Quota, Role } from "@stoa/contract";
import type { Context } from "../context.ts";
import type { Queries } from "../db/database.ts";

export interface KeyRow {
  id: string;
  userId: string;
  role: Role;
  plan: Plan;
  quota: Quota[] | null;
  digest: Buffer;
  permissions: Permission[];
  expiresAt: Date | null;
  lastUsedAt: Date | null;
}

/** Asked by every request, hence plain SQL with a name: PostgreSQL parses it once a connection. */
const FIND_KEY = {
  name: "find_key",
  text: `select k.id, k.user_id as "userId", u.role, u.plan, u.quota, k.digest, k.permissions, k.expires_at as "expiresAt",
                k.last_used_at as "lastUsedAt"
           from api_keys k join users u on u.id = k.user_id
          where k.lookup = $1 and k.revoked_at is null and u.banned_at is null and u.closed_at is null`,
};

export async function findKey({ pool }: Context, lookup: string): Promise<KeyRow | undefined> {
  const { rows } = await pool.query<KeyRow>({ ...FIND_KEY, values: [lookup] });
  return rows[0];
}

/** Compared again in the row, so that of many parallel requests one writes. */
export function touchKey({ db }: Context, id: string, now: Date, before: Date) {
  return db
    .updateTable("api_keys")
    .set({ last_used_at: now })
    .where("id", "=", id)
    .where((row) => row.or([row("last_used_at", "is", null), row("last_used_at", "<", before)]))
    .execute();
}

export interface NewKey {
  id: string;
  user_id: string;
  lookup: string;
  digest: Buffer;
  name: string;
  permissions: string[];
  created_at: Date;
  expires_at: Date | null;
}

export const insertKey = ({ db }: Context, key: NewKey) => db.insertInto("api_keys").values(key).execute();

export const revokeKeysOf = (db: Queries, userId: string, now: Date) =>
  db
    .updateTable("api_keys")
    .set({ revoked_at: now })
    .where("user_id", "=", userId)
    .where("revoked_at", "is", null)
    .returning("id")
    .execute();

export const revokeKeysNamed = ({ db }: Context, userId: string, name: string, now: Date) =>
  db
    .updateTable("api_keys")
    .set({ revoked_at: now })
    .where("user_id", "=", userId)
    .where("name", "=", name)
    .where("revoked_at", "is", null)
    .execute();

export const deleteKeysOf = (db: Queries, userId: string) =>
  db.deleteFrom("api_keys").where("user_id", "=", userId).execute();
