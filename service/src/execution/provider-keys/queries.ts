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

/** The newest first. */
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

/** Under the lock of the account, so that parallel requests are counted one after another. */
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

/** Not of a key that was deleted meanwhile: its secret must not come back. */
export const updateKey = (db: Queries, id: string, values: Partial<KeyColumns>) =>
  db.updateTable("providerKeys").set(values).where("id", "=", id).where("deletedAt", "is", null).execute();

/** Only while the key has the secret that was checked: its owner may have replaced it meanwhile. */
export const updateKeyStatus = (
  db: Queries,
  tried: { id: string; sealedKey: string },
  status: "valid" | "invalid",
) =>
  db
    .updateTable("providerKeys")
    .set({ status })
    .where("id", "=", tried.id)
    .where("sealedKey", "=", tried.sealedKey)
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

/** What a call costs at most, in USD, for a key with a budget. */
export interface CallPrice {
  promptUsd: number;
  tokenUsd: number;
  /** Of the answer: as many as it may have, and as few as it may be lowered to. */
  maxTokens: number;
  minTokens: number;
  /** The prompt as it is likely to be billed, for a call whose process dies. */
  abandonedUsd: number;
}

/** What a call reserves of its key's limits before it is made. */
export interface Reservation {
  callId: string;
  providerKeyId: string;
  executionId: string;
  /** null: the key has no budget, or nobody knows the price. */
  price: CallPrice | null;
  startedAt: Date;
  monthStart: Date;
  leaseUntil: Date;
}

/**
 * What stands against a call. `reserved`: what is left of the budget is held by calls under way. `forgotten`: its owner removed
 * the key meanwhile.
 */
export type KeyRefusal = "budget" | "reserved" | "concurrency" | "forgotten";

/** A refusal, or the number of output tokens that the rest of the budget pays for. */
export interface ReservationResult<Refusal = KeyRefusal> {
  refusedBy?: Refusal;
  /** null: nobody limits them. */
  maxTokens?: number | null;
}

/** An expression, so that what belongs to the call is written in the same statement. */
export const reserveCallSql = ({ price, ...reservation }: Reservation) => sql<ReservationResult>`
  reserve_provider_call(${reservation.callId}, ${reservation.providerKeyId}, ${reservation.executionId},
    ${price?.promptUsd ?? null}, ${price?.tokenUsd ?? null}, ${price?.maxTokens ?? null}, ${price?.minTokens ?? null},
    ${price?.abandonedUsd ?? 0}, ${reservation.startedAt}, ${reservation.monthStart}, ${reservation.leaseUntil})`;

export async function reserveCall(db: Queries, reservation: Reservation): Promise<ReservationResult> {
  const { rows } = await sql<{ reserved: ReservationResult }>`${prepared("reserve_provider_call")}
    select ${reserveCallSql(reservation)} as reserved`.execute(db);
  return firstOf(rows).reserved;
}

/** A key as it was read. One that was removed reads otherwise, and an address changes only with its secret. */
export interface KeySnapshot {
  sealedKey: string;
  /** What a call says of it is compared with this. */
  status: KeyRow["status"];
  hasBudget: boolean;
}

/** What stands against a call that goes by what was read before; `changed`: the key is another now. */
export type LateRefusal = KeyRefusal | "changed";

interface MovedCalls {
  /** JSON. */
  ended: string;
  /** JSON. */
  opened: string;
  condition: RawBuilder<unknown>;
}

const buildMoveCallsSql = readSql<MovedCalls>(new URL("./sql/move-calls.sql", import.meta.url));

/** Parts of the `with` of a statement: where `condition` holds, calls end and others are reserved. */
export const moveCallsSql = (
  ended: readonly CallEnd[],
  opened: readonly { reservation: Reservation; key: KeySnapshot }[],
  condition: RawBuilder<unknown>,
) => {
  const ends = ended.map(({ callId, costUsd, endedAt }) => ({ callId, costUsd, endedAt }));
  const opens = opened
    .map(({ reservation: { price, ...reservation }, key }) => ({ ...key, ...reservation, ...price }))
    .toSorted((a, b) => (a.providerKeyId < b.providerKeyId ? -1 : 1));
  return buildMoveCallsSql({ ended: JSON.stringify(ends), opened: JSON.stringify(opens), condition });
};

/** The results of the reservations of `moveCallsSql`, by the ids of their calls: a column of the same statement. */
export const reservationResultsSql = sql`
  (select coalesce(jsonb_object_agg("callId", reserved), '{}') from opened_calls)`;

/** Of the calls that ended since the month began, at most so many; answers how many are counted now that were not. */
export async function countCalls(
  db: Queries,
  keyId: string,
  monthStart: Date,
  most: number,
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count_provider_calls(${keyId}, ${monthStart}, ${most}) as count`.execute(db);
  return firstOf(rows).count;
}

/** How a call ended. */
export interface CallEnd {
  callId: string;
  /** The key as it was when it was called: its owner may have replaced the secret meanwhile. */
  key: { id: string; sealedKey: string };
  costUsd: number;
  /** What the provider's answer says of the key, where that is new. */
  keyStatus: "valid" | "invalid" | null;
  endedAt: Date;
}

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
