import type { Provider } from "@stoa/contract";
import { sql } from "kysely";
import type { Context } from "../context.ts";
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

export interface NewExecution {
  id: string;
  userId: string;
  productId: string;
  productVersion: string;
  providerKeyId: string | null;
  provider: string;
  model: string | null;
  createdAt: Date;
  leaseUntil: Date;
}

export type KeyLimit = "budget" | "concurrency";

/**
 * Writes the run as running, unless a limit of its key stands against it, and answers which one. What still runs has
 * no cost yet: the budget is that of the runs that ended.
 */
export async function insertExecution(
  ctx: Context,
  execution: NewExecution,
  month: { start: Date },
): Promise<KeyLimit | null> {
  return ctx.db.transaction().execute(async (tx) => {
    const refusedBy = execution.providerKeyId ? await limitAgainst(tx, execution, month.start) : null;
    if (refusedBy) return refusedBy;
    await tx
      .insertInto("executions")
      .values({
        id: execution.id,
        user_id: execution.userId,
        product_id: execution.productId,
        product_version: execution.productVersion,
        provider_key_id: execution.providerKeyId,
        provider: execution.provider,
        model: execution.model,
        status: "running",
        lease_until: execution.leaseUntil,
        created_at: execution.createdAt,
      })
      .execute();
    return null;
  });
}

/**
 * Locks the key, then counts its runs, in two statements: one that had to wait for the lock would count as of before
 * it waited, and let parallel runs slip through together.
 */
async function limitAgainst(tx: Tx, { providerKeyId, createdAt }: NewExecution, monthStart: Date) {
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

export interface ExecutionEnd {
  status: "completed" | "failed" | "canceled";
  model?: string;
  sealed_texts?: string | null;
  finish_reason?: string;
  error_code?: string;
  error_message?: string;
  attempts: number;
  prompt_tokens?: number;
  completion_tokens?: number;
  cost_usd?: number;
  cost_known?: boolean;
  duration_ms: number;
  completed_at: Date;
}

/** Only a running one ends: what was declared dead stays so. Texts of one that was forgotten meanwhile do not come back. */
export const endExecution = (db: Queries, id: string, { sealed_texts = null, ...end }: ExecutionEnd) =>
  db
    .updateTable("executions")
    .set({ ...end, sealed_texts: sql<string | null>`case when deleted_at is null then ${sealed_texts} end` })
    .where("id", "=", id)
    .where("status", "=", "running")
    .execute();

export interface ExecutionRow {
  id: string;
  productId: string;
  productVersion: string;
  provider: string;
  model: string | null;
  status: "queued" | "running" | "waiting" | "completed" | "failed" | "canceled";
  finishReason: string | null;
  errorCode: string | null;
  errorMessage: string | null;
  attempts: number;
  promptTokens: number | null;
  completionTokens: number | null;
  costUsd: string | null;
  costKnown: boolean | null;
  durationMs: number | null;
  createdAt: Date;
  completedAt: Date | null;
}

const ownExecutions = (db: Queries, userId: string) =>
  db
    .selectFrom("executions")
    .where("user_id", "=", userId)
    .where("deleted_at", "is", null)
    .select([
      ...([
        "id",
        "product_id as productId",
        "product_version as productVersion",
        "provider",
        "model",
      ] as const),
      ...(["status", "finish_reason as finishReason", "attempts"] as const),
      ...([
        "error_code as errorCode",
        "error_message as errorMessage",
        "prompt_tokens as promptTokens",
      ] as const),
      ...([
        "completion_tokens as completionTokens",
        "cost_usd as costUsd",
        "cost_known as costKnown",
      ] as const),
      ...(["duration_ms as durationMs", "created_at as createdAt", "completed_at as completedAt"] as const),
    ])
    .$castTo<ExecutionRow>();

export const findExecution = (db: Queries, userId: string, id: string) =>
  ownExecutions(db, userId).where("id", "=", id).executeTakeFirst();

/** Apart from the row: texts can be megabytes, and lists show none. */
export const findTexts = (db: Queries, id: string) =>
  db.selectFrom("executions").select("sealed_texts as sealed").where("id", "=", id).executeTakeFirst();

export interface ExecutionFilter extends Paging {
  status?: string | undefined;
  productId?: string | null | undefined;
  from?: Date | undefined;
  to?: Date | undefined;
}

export async function listExecutions(db: Queries, userId: string, filter: ExecutionFilter) {
  let own = ownExecutions(db, userId);
  if (filter.status) own = own.where("status", "=", filter.status);
  if (filter.productId) own = own.where("product_id", "=", filter.productId);
  if (filter.from) own = own.where("created_at", ">=", filter.from);
  if (filter.to) own = own.where("created_at", "<", filter.to);
  const items = await own.orderBy("id", "desc").limit(filter.limit).offset(offsetOf(filter)).execute();
  const { total } = await own
    .clearSelect()
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items, total };
}

/** Its texts are gone; its cost stays, because the key's budget counts it. */
export const eraseExecution = (db: Queries, id: string, now: Date) =>
  db.updateTable("executions").set({ deleted_at: now, sealed_texts: null }).where("id", "=", id).execute();

/** Runs whose process died: nobody will end them. */
export const failAbandoned = (db: Queries, now: Date) =>
  db
    .updateTable("executions")
    .set({
      status: "failed",
      error_code: "INTERNAL_ERROR",
      error_message: "The process that ran this ended before it did.",
      completed_at: now,
    })
    .where("status", "=", "running")
    .where("lease_until", "<", now)
    .execute();

export const eraseTextsBefore = (db: Queries, before: Date) =>
  db
    .updateTable("executions")
    .set({ sealed_texts: null })
    .where("created_at", "<", before)
    .where("sealed_texts", "is not", null)
    .execute();

/** The rows stay for the history that points at them; what they hold does not. */
export async function eraseAllOf(db: Queries, userId: string, now: Date): Promise<void> {
  await db
    .updateTable("provider_keys")
    .set({ deleted_at: now, sealed_key: "", last4: "", name: "", base_url: null })
    .where("user_id", "=", userId)
    .execute();
  await db
    .updateTable("executions")
    .set({ deleted_at: now, sealed_texts: null, error_message: null })
    .where("user_id", "=", userId)
    .execute();
}
