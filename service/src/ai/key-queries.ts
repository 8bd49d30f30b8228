import type { Provider } from "@stoa/contract";
import { sql } from "kysely";
import type { Queries, Tx } from "../db/database.ts";
import { offsetOf, type Page, type Paging } from "../db/paging.ts";

export interface KeyRow {
  id: string;
  userId: string;
  provider: Provider;
  name: string;
  sealedKey: string;
  last4: string;
  baseUrl: string | null;
  status: "unverified" | "valid" | "invalid";
  monthlyBudgetUsd: string | null;
  maxConcurrency: number | null;
  createdAt: Date;
  lastUsedAt: Date | null;
}

const ownKeys = (db: Queries, userId: string) =>
  db
    .selectFrom("provider_keys")
    .where("user_id", "=", userId)
    .where("deleted_at", "is", null)
    .select([
      ...(["id", "user_id as userId", "provider", "name", "sealed_key as sealedKey", "last4"] as const),
      ...(["base_url as baseUrl", "status", "monthly_budget_usd as monthlyBudgetUsd"] as const),
      ...([
        "max_concurrency as maxConcurrency",
        "created_at as createdAt",
        "last_used_at as lastUsedAt",
      ] as const),
    ])
    .$castTo<KeyRow>();

export const findKey = (db: Queries, userId: string, id: string) =>
  ownKeys(db, userId).where("id", "=", id).executeTakeFirst();

export async function listKeys(db: Queries, userId: string, paging: Paging): Promise<Page<KeyRow>> {
  const items = await ownKeys(db, userId)
    .orderBy("id", "desc")
    .limit(paging.limit)
    .offset(offsetOf(paging))
    .execute();
  const { total } = await db
    .selectFrom("provider_keys")
    .where("user_id", "=", userId)
    .where("deleted_at", "is", null)
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items, total };
}

export interface KeyValues {
  name: string;
  sealed_key: string;
  last4: string;
  base_url: string | null;
  status: KeyRow["status"];
  monthly_budget_usd: number | null;
  max_concurrency: number | null;
}

export const insertKey = (
  db: Queries,
  key: KeyValues & { id: string; user_id: string; provider: Provider; created_at: Date },
) => db.insertInto("provider_keys").values(key).execute();

/** Nothing of a key that was forgotten meanwhile: its secret must not come back. */
export const updateKey = (db: Queries, id: string, values: Partial<KeyValues>) =>
  db.updateTable("provider_keys").set(values).where("id", "=", id).where("deleted_at", "is", null).execute();

/** Only of the secret that was tried: its owner may have replaced it meanwhile. */
export const noteVerdict = (
  db: Queries,
  tried: { id: string; sealedKey: string },
  status: "valid" | "invalid",
) =>
  db
    .updateTable("provider_keys")
    .set({ status })
    .where("id", "=", tried.id)
    .where("sealed_key", "=", tried.sealedKey)
    .execute();

/** The row stays for the history that points at it; the secret does not. */
export const eraseKey = (db: Queries, id: string, now: Date) =>
  db
    .updateTable("provider_keys")
    .set({ deleted_at: now, sealed_key: "", last4: "" })
    .where("id", "=", id)
    .execute();

/** The rows stay for the history that points at them; what they hold does not. */
export const eraseKeysOf = (db: Queries, userId: string, now: Date) =>
  db
    .updateTable("provider_keys")
    .set({ deleted_at: now, sealed_key: "", last4: "", name: "", base_url: null })
    .where("user_id", "=", userId)
    .execute();

export type KeyLimit = "budget" | "concurrency";

/**
 * Locks the key, then counts its runs, in two statements: one that had to wait for the lock would count as of before
 * it waited, and let parallel runs slip through together.
 */
export async function limitAgainst(
  tx: Tx,
  { providerKeyId, createdAt }: { providerKeyId: string; createdAt: Date },
  monthStart: Date,
) {
  await tx
    .updateTable("provider_keys")
    .set({ last_used_at: createdAt })
    .where("id", "=", providerKeyId)
    .execute();
  const { rows } = await sql<{ refusedBy: KeyLimit | null }>`
    select case
      when max_concurrency <= (
        select count(*) from executions e
         where e.provider_key_id = k.id and e.status = 'running' and e.lease_until > ${createdAt}) then 'concurrency'
      when monthly_budget_usd <= (
        select coalesce(sum(e.cost_usd), 0) from executions e
         where e.provider_key_id = k.id and e.created_at >= ${monthStart}) then 'budget' end as "refusedBy"
      from provider_keys k where k.id = ${providerKeyId}`.execute(tx);
  return rows[0]?.refusedBy ?? null;
}
