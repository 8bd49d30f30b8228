import type { Permission, Plan, Quota, Role } from "@stoa/contract";
import { sql } from "kysely";
import type { Context } from "../../core/context.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

/** A valid key with its account. */
export interface KeyRow {
  id: string;
  userId: string;
  role: Role;
  plan: Plan;
  quota: Quota[] | null;
  digest: Buffer;
  permissions: ReadonlySet<Permission>;
  expiresAt: Date | null;
  lastUsedAt: Date | null;
}

/** Runs on each request whose key is not cached, hence a named statement. */
const FIND_KEY = {
  name: "find_key",
  text: `select k.id, k.user_id as "userId", u.role, u.plan, u.quota, k.digest, k.permissions, k.expires_at as "expiresAt",
                k.last_used_at as "lastUsedAt"
           from api_keys k join users u on u.id = k.user_id
          where k.lookup = $1 and k.revoked_at is null and u.banned_at is null and u.closed_at is null`,
};

export async function findKey({ pool }: Context, lookup: string): Promise<KeyRow | undefined> {
  const { rows } = await pool.query<KeyRow & { permissions: Permission[] }>({
    ...FIND_KEY,
    values: [lookup],
  });
  const [row] = rows;
  return row && { ...row, permissions: new Set(row.permissions) };
}

/** The condition lets one of many parallel requests write. */
export function updateKeyLastUsed({ db }: Context, id: string, now: Date, before: Date) {
  return db
    .updateTable("apiKeys")
    .set({ lastUsedAt: now })
    .where("id", "=", id)
    .where((row) => row.or([row("lastUsedAt", "is", null), row("lastUsedAt", "<", before)]))
    .execute();
}

export interface NewKey {
  id: string;
  userId: string;
  lookup: string;
  digest: Buffer;
  name: string;
  permissions: string[];
  createdAt: Date;
  expiresAt: Date | null;
}

export const insertKey = (db: Queries, key: NewKey) => db.insertInto("apiKeys").values(key).execute();

export const revokeKeysOfUser = (db: Queries, userId: string, now: Date) =>
  db
    .updateTable("apiKeys")
    .set({ revokedAt: now })
    .where("userId", "=", userId)
    .where("revokedAt", "is", null)
    .returning("id")
    .execute();

export interface OwnKey {
  id: string;
  userId: string;
  lookup: string;
  name: string;
  permissions: Permission[];
  createdAt: Date;
  expiresAt: Date | null;
  replacedAt: Date | null;
  revokedAt: Date | null;
  lastUsedAt: Date | null;
}

const ownKeys = (db: Queries) =>
  db
    .selectFrom("apiKeys")
    .select([
      "id",
      "userId",
      "lookup",
      "name",
      "permissions",
      "createdAt",
      "expiresAt",
      "replacedAt",
      "revokedAt",
      "lastUsedAt",
    ])
    .$castTo<OwnKey>();

export async function listKeys(db: Queries, userId: string, paging: Paging): Promise<Page<OwnKey>> {
  const items = await ownKeys(db)
    .where("userId", "=", userId)
    .orderBy("id", "desc")
    .limit(paging.limit)
    .offset(offsetOf(paging))
    .execute();
  const { total } = await db
    .selectFrom("apiKeys")
    .where("userId", "=", userId)
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items, total };
}

export const lockKey = (tx: Tx, userId: string, id: string) =>
  ownKeys(tx).where("userId", "=", userId).where("id", "=", id).forUpdate().executeTakeFirst();

/** By id, or by the parts of a pasted key. */
export const lockAnyKey = (tx: Tx, by: { id: string } | { lookup: string; digest: Buffer }) =>
  ownKeys(tx)
    .where((row) => row.and(by))
    .forUpdate()
    .executeTakeFirst();

const owners = (tx: Tx, userId: string) => tx.selectFrom("users").select("email").where("id", "=", userId);

export const findOwner = (tx: Tx, userId: string) => owners(tx, userId).executeTakeFirstOrThrow();

/** Serialises the creation of keys, so that the count is exact. */
export const lockOwner = (tx: Tx, userId: string) =>
  owners(tx, userId).forNoKeyUpdate().executeTakeFirstOrThrow();

export const countValidKeys = (tx: Tx, userId: string, now: Date) =>
  tx
    .selectFrom("apiKeys")
    .select((row) => row.fn.countAll<number>().as("count"))
    .where("userId", "=", userId)
    .where("revokedAt", "is", null)
    .where((row) => row.or([row("expiresAt", "is", null), row("expiresAt", ">", now)]))
    .executeTakeFirstOrThrow();

export const markKeyReplaced = (tx: Tx, id: string, replacedAt: Date, expiresAt: Date) =>
  tx.updateTable("apiKeys").set({ replacedAt, expiresAt }).where("id", "=", id).execute();

export const renameKey = (tx: Tx, id: string, name: string) =>
  tx.updateTable("apiKeys").set({ name }).where("id", "=", id).execute();

export const revokeKey = (tx: Tx, id: string, now: Date) =>
  tx.updateTable("apiKeys").set({ revokedAt: now }).where("id", "=", id).execute();

export interface ExpiringKey {
  id: string;
  userId: string;
  name: string;
  lookup: string;
  expiresAt: Date;
}

/**
 * Marks and returns the keys that expire within `days` and have no email about it yet. One statement, so each key goes
 * to one of parallel runs. Keys that were created for a shorter time, and replaced keys, are omitted.
 */
export const claimExpiringKeys = (tx: Tx, days: number, now: Date, until: Date) =>
  tx
    .updateTable("apiKeys as k")
    .from("users as u")
    .set({ expiryEmailedDays: days })
    .whereRef("u.id", "=", "k.userId")
    .where("u.bannedAt", "is", null)
    .where("u.closedAt", "is", null)
    .where("k.revokedAt", "is", null)
    .where("k.replacedAt", "is", null)
    .where("k.expiresAt", ">", now)
    .where("k.expiresAt", "<=", until)
    .where(sql<boolean>`k.created_at <= k.expires_at - make_interval(days => ${days})`)
    .where((row) => row.or([row("k.expiryEmailedDays", "is", null), row("k.expiryEmailedDays", ">", days)]))
    .returning(["k.id", "k.userId", "k.name", "k.lookup", "k.expiresAt"])
    .$castTo<ExpiringKey>()
    .execute();

export const deleteKeysOfUser = (db: Queries, userId: string) =>
  db.deleteFrom("apiKeys").where("userId", "=", userId).execute();
