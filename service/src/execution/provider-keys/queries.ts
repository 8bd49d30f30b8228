import type { Provider } from "@stoa/contract";
import { type RawBuilder, sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import { prepared } from "../../platform/db/prepared.ts";
import { readSql } from "../../platform/db/statement.ts";

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

const selectKeys = (db: Queries, userId: string) =>
  db
    .selectFrom("providerKeys")
    .where("userId", "=", userId)
    .where("deletedAt", "is", null)
    .select([
      "id",
      "userId",
      "provider",
      "name",
      "sealedKey",
      "last4",
      "baseUrl",
      "status",
      "monthlyBudgetUsd",
      "maxConcurrency",
      "createdAt",
      "lastUsedAt",
    ])
    .$castTo<KeyRow>();

export async function findKey(db: Queries, userId: string, id: string): Promise<KeyRow | undefined> {
  const { rows } = await sql<KeyRow>`${prepared("find_provider_key")}
    select id, user_id, provider, name, sealed_key, last4, base_url, status, monthly_budget_usd, max_concurrency, created_at,
           last_used_at
      from provider_keys where id = ${id} and user_id = ${userId} and deleted_at is null`.execute(db);
  return rows[0];
}

/** Of keys that are not known to be invalid. */
export async function listUsableProviders(db: Queries, userId: string): Promise<Provider[]> {
  const keys = db.selectFrom("providerKeys").select("provider").distinct();
  const usable = keys
    .where("userId", "=", userId)
    .where("deletedAt", "is", null)
    .where("status", "<>", "invalid");
  return (await usable.$castTo<{ provider: Provider }>().execute()).map(({ provider }) => provider);
}

/** Newest first. */
export const listValidKeys = (db: Queries, userId: string, providers?: Provider[]) => {
  const keys = selectKeys(db, userId).where("status", "=", "valid");
  return (providers ? keys.where("provider", "in", providers) : keys).orderBy("id", "desc").execute();
};
export async function listKeys(db: Queries, userId: string, paging: Paging): Promise<Page<KeyRow>> {
  const items = await selectKeys(db, userId)
    .orderBy("id", "desc")
    .limit(paging.limit)
    .offset(offsetOf(paging))
    .execute();
  const { total } = await db
    .selectFrom("providerKeys")
    .where("userId", "=", userId)
    .where("deletedAt", "is", null)
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items, total };
}

/** Locks the account, so that concurrent requests are counted one after another. */
export async function countKeys(tx: Tx, userId: string): Promise<number> {
  await tx.selectFrom("users").select("id").where("id", "=", userId).forNoKeyUpdate().execute();
  const { count } = await tx
    .selectFrom("providerKeys")
    .where("userId", "=", userId)
    .where("deletedAt", "is", null)
    .select((row) => row.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return count;
}

export interface KeyColumns {
  name: string;
  sealedKey: string;
  last4: string;
  baseUrl: string | null;
  status: KeyRow["status"];
  monthlyBudgetUsd: number | null;
  maxConcurrency: number | null;
}

export const insertKey = (
  db: Queries,
  key: KeyColumns & { id: string; userId: string; provider: Provider; createdAt: Date },
) => db.insertInto("providerKeys").values(key).execute();

/** Not of a deleted key: its secret must not come back. */
export const updateKey = (db: Queries, id: string, values: Partial<KeyColumns>) =>
  db.updateTable("providerKeys").set(values).where("id", "=", id).where("deletedAt", "is", null).execute();

/** Only if the key still has the verified secret: the owner may have replaced it. */
export const updateKeyStatus = (
  db: Queries,
  verified: { id: string; sealedKey: string },
  status: "valid" | "invalid",
) =>
  db
    .updateTable("providerKeys")
    .set({ status })
    .where("id", "=", verified.id)
    .where("sealedKey", "=", verified.sealedKey)
    .execute();

/** Executions reference the row, so it stays without its secret. */
export const eraseKey = (db: Queries, id: string, now: Date) =>
  db
    .updateTable("providerKeys")
    .set({ deletedAt: now, sealedKey: "", last4: "" })
    .where("id", "=", id)
    .execute();

/** Executions reference the rows, so they stay without their contents. */
export const eraseKeysOfUser = (db: Queries, userId: string, now: Date) =>
  db
    .updateTable("providerKeys")
    .set({ deletedAt: now, sealedKey: "", last4: "", name: "", baseUrl: null })
    .where("userId", "=", userId)
    .execute();

export interface CallPrice {
  promptUsd: number;
  tokenUsd: number;
  /** Limits of the answer: the wanted one, and the least to which a budget may lower it. */
  maxTokens: number;
  minTokens: number;
  /** The likely cost of the prompt, for a call whose process dies. */
  abandonedUsd: number;
}

/** The values with which a call reserves its part of the key's limits. */
export interface Reservation {
  callId: string;
  providerKeyId: string;
  executionId: string;
  /** null: the key has no budget, or the price is unknown. */
  price: CallPrice | null;
  startedAt: Date;
  monthStart: Date;
  leaseUntil: Date;
}

/** Why a call is refused. `reserved`: open calls hold the rest of the budget. `forgotten`: the owner deleted the key. */
export type KeyRefusal = "budget" | "reserved" | "concurrency" | "forgotten";

/** A refusal, or the number of output tokens that the rest of the budget pays for. */
export interface ReservationResult<Refusal = KeyRefusal> {
  refusedBy?: Refusal;
  /** null: no limit. */
  maxTokens?: number | null;
}

/** An expression, so that one statement can also insert what belongs to the call. */
export const reserveCallSql = ({ price, ...reservation }: Reservation) => sql<ReservationResult>`
  reserve_provider_call(${reservation.callId}, ${reservation.providerKeyId}, ${reservation.executionId},
    ${price?.promptUsd ?? null}, ${price?.tokenUsd ?? null}, ${price?.maxTokens ?? null}, ${price?.minTokens ?? null},
    ${price?.abandonedUsd ?? 0}, ${reservation.startedAt}, ${reservation.monthStart}, ${reservation.leaseUntil})`;

export async function reserveCall(db: Queries, reservation: Reservation): Promise<ReservationResult> {
  const { rows } = await sql<{ reserved: ReservationResult }>`${prepared("reserve_provider_call")}
    select ${reserveCallSql(reservation)} as reserved`.execute(db);
  return firstOf(rows).reserved;
}

/** A key as the caller read it. Each change of its address, and its deletion, also changes `sealedKey`. */
export interface KeySnapshot {
  sealedKey: string;
  status: KeyRow["status"];
  hasBudget: boolean;
}

/** Refusals of a call that used an earlier read of its key; `changed`: the key has changed since. */
export type LateRefusal = KeyRefusal | "changed";

type KeyLimits = Pick<KeyRow, "monthlyBudgetUsd" | "maxConcurrency">;

/** In SQL: whether a key is as a caller read it. Its deletion changes `sealedKey`. */
export const isSameKeySql = (
  id: string,
  key: Pick<KeyRow, "sealedKey" | "status"> & KeyLimits,
) => sql<boolean>`
  exists (select from provider_keys
           where id = ${id}::uuid and sealed_key = ${key.sealedKey} and status = ${key.status}
             and (monthly_budget_usd is not null) = ${key.monthlyBudgetUsd !== null}::boolean
             and (max_concurrency is not null) = ${key.maxConcurrency !== null}::boolean)`;

/** The columns of a row `key`, with which a statement compares keys. */
export const toKeyRow = (
  id: string,
  { sealedKey, status, monthlyBudgetUsd, maxConcurrency }: Pick<KeyRow, "sealedKey" | "status"> & KeyLimits,
) => ({
  ...{ keyId: id, sealedKey, keyStatus: status },
  ...{ hasBudget: monthlyBudgetUsd !== null, hasConcurrencyLimit: maxConcurrency !== null },
});

/** As `isSameKeySql`, for a row `key`. */
export const isSameKeyRowSql = sql<boolean>`
  exists (select from provider_keys
           where id = key."keyId" and sealed_key = key."sealedKey" and status = key."keyStatus"
             and (monthly_budget_usd is not null) = key."hasBudget"
             and (max_concurrency is not null) = key."hasConcurrencyLimit")`;

interface MovedCalls {
  /** JSON. */
  ended: string;
  endedIds: string[];
  /** JSON. */
  opened: string;
  condition: RawBuilder<unknown>;
}

const buildMoveCallsSql = readSql<MovedCalls>(new URL("./sql/move-calls.sql", import.meta.url));

/** Parts for the `with` of a statement: if `condition` holds, calls end and others are reserved. */
export const moveCallsSql = (
  ended: readonly CallEnd[],
  opened: readonly { reservation: Reservation; key: KeySnapshot }[],
  condition: RawBuilder<unknown>,
) => {
  const ends = ended.map(({ callId, costUsd, endedAt }) => ({ callId, costUsd, endedAt }));
  const opens = opened
    .map(({ reservation: { price, ...reservation }, key }) => ({ ...key, ...reservation, ...price }))
    .toSorted((a, b) => (a.providerKeyId < b.providerKeyId ? -1 : 1));
  const endedIds = ends.map(({ callId }) => callId);
  return buildMoveCallsSql({
    ended: JSON.stringify(ends),
    endedIds,
    opened: JSON.stringify(opens),
    condition,
  });
};

/** A column of the same statement: the reservations of `moveCallsSql`, by call id. */
export const reservationResultsSql = sql`
  (select coalesce(jsonb_object_agg("callId", reserved), '{}') from opened_calls)`;

/** Adds up to `most` ended calls of the month to the spent amount. Returns how many it added. */
export async function countCalls(
  db: Queries,
  keyId: string,
  monthStart: Date,
  maxCount: number,
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count_provider_calls(${keyId}, ${monthStart}, ${maxCount}) as count`.execute(db);
  return firstOf(rows).count;
}

export interface CallEnd {
  callId: string;
  /** The key that the call used: the owner may have replaced its secret since. */
  key: { id: string; sealedKey: string };
  costUsd: number;
  /** The new status of the key, as the provider's answer shows it; null: unchanged. */
  keyStatus: "valid" | "invalid" | null;
  endedAt: Date;
}

/** Parts for the `with` of a statement: opens the calls of `rows`, whose keys have no limits (`hasLimits`). */
export const openUnlimitedCallsSql = readSql<{ rows: RawBuilder<unknown> }>(
  new URL("./sql/open-unlimited-calls.sql", import.meta.url),
);

/** Whether a call must wait for others of its key to be counted. */
export const hasLimits = ({ monthlyBudgetUsd, maxConcurrency }: KeyLimits): boolean =>
  monthlyBudgetUsd !== null || maxConcurrency !== null;

/** In SQL: whether a key is as a caller read it, and has no limits. */
export const isSameUnlimitedKeySql = (
  id: RawBuilder<string>,
  { sealedKey, status }: Record<"sealedKey" | "status", RawBuilder<string>>,
) => sql<boolean>`
  exists (select from provider_keys
           where id = ${id} and sealed_key = ${sealedKey} and status = ${status}
             and monthly_budget_usd is null and max_concurrency is null)`;

/** Parts of the `with` of a statement that also ends a call. A call with an expired lease ends too, because the provider bills it. */
export const endCallSql = (end: CallEnd | null) => sql`
  ended as (
    update provider_calls set cost_usd = ${end?.costUsd ?? null}, ended_at = ${end?.endedAt ?? null}
     where id = ${end?.callId ?? null} and ended_at is null),
  noted as (
    update provider_keys set status = ${end?.keyStatus ?? null}
     where ${end?.keyStatus ?? null}::text is not null and id = ${end?.key.id ?? null} and sealed_key = ${end?.key.sealedKey ?? null})`;

export const updateEndedCall = (db: Queries, end: CallEnd) =>
  sql`${prepared("end_provider_call")} with ${endCallSql(end)} select`.execute(db);

/** `before` is older than any month that a budget counts. */
export const deleteCallsBefore = (db: Queries, before: Date) =>
  db.deleteFrom("providerCalls").where("startedAt", "<", before).execute();
