import type { executionStatuses } from "@stoa/contract";
import { sql } from "kysely";
import type { Queries } from "../../platform/db/database.ts";
import { offsetOf, type Paging } from "../../platform/db/paging.ts";

/** Why all runs of an account are canceled. */
export type AccountCancelReason = "account_banned" | "account_closed";

export type ExecutionType = "PROMPT" | "WORKFLOW";
export type ExecutionMode = "sync" | "async" | "stream";
export type ExecutionStatus = (typeof executionStatuses)[number];

export interface ExecutionRow {
  id: string;
  userId: string;
  type: ExecutionType;
  mode: ExecutionMode;
  productId: string;
  productVersion: string;
  /** null: a workflow. */
  provider: string | null;
  model: string | null;
  status: ExecutionStatus;
  finishReason: string | null;
  errorCode: string | null;
  errorMessage: string | null;
  fault: Record<string, unknown> | null;
  attempts: number;
  promptTokens: number | null;
  completionTokens: number | null;
  costUsd: string | null;
  costKnown: boolean | null;
  priceList: string | null;
  usageEstimated: boolean;
  durationMs: number | null;
  createdAt: Date;
  completedAt: Date | null;
  cancelRequestedAt: Date | null;
}

export const selectExecutions = (db: Queries, userId: string) =>
  db
    .selectFrom("executions")
    .where("userId", "=", userId)
    .where("deletedAt", "is", null)
    .select([
      "id",
      "userId",
      "type",
      "mode",
      "status",
      "provider",
      "model",
      "productId",
      "productVersion",
      "finishReason",
      "attempts",
      "usageEstimated",
      "errorCode",
      "errorMessage",
      "promptTokens",
      "fault",
      "completionTokens",
      "costUsd",
      "costKnown",
      "priceList",
      "durationMs",
      "createdAt",
      "completedAt",
      "cancelRequestedAt",
    ])
    .$castTo<ExecutionRow>();

export const findExecution = (db: Queries, userId: string, id: string) =>
  selectExecutions(db, userId).where("id", "=", id).executeTakeFirst();

/** Texts may be megabytes and lists show none, so they are not in the row. */
export const findTexts = (db: Queries, id: string) =>
  db.selectFrom("executions").select("sealedTexts as sealed").where("id", "=", id).executeTakeFirst();

export interface ExecutionFilter extends Paging {
  status?: string | undefined;
  type?: ExecutionType | undefined;
  mode?: ExecutionMode | undefined;
  productId?: string | null | undefined;
  from?: Date | undefined;
  to?: Date | undefined;
}

export async function listExecutions(db: Queries, userId: string, filter: ExecutionFilter) {
  let own = selectExecutions(db, userId);
  if (filter.status) own = own.where("status", "=", filter.status);
  if (filter.type) own = own.where("type", "=", filter.type);
  if (filter.mode) own = own.where("mode", "=", filter.mode);
  if (filter.productId) own = own.where("productId", "=", filter.productId);
  if (filter.from) own = own.where("createdAt", ">=", filter.from);
  if (filter.to) own = own.where("createdAt", "<", filter.to);
  const items = await own.orderBy("id", "desc").limit(filter.limit).offset(offsetOf(filter)).execute();
  const { total } = await own
    .clearSelect()
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items, total };
}

export interface NewWorkflowRow {
  id: string;
  userId: string;
  productId: string;
  productVersion: string;
  mode: ExecutionMode;
  sealedTexts: string | null;
  createdAt: Date;
}

/** A statement, which the workflow engine embeds in the one that inserts the run. */
export const insertWorkflowSql = (execution: NewWorkflowRow) => sql`
  insert into executions (id, type, user_id, product_id, product_version, mode, status, sealed_texts, created_at)
  values (${execution.id}, 'WORKFLOW', ${execution.userId}, ${execution.productId}, ${execution.productVersion}, ${execution.mode},
          'queued', ${execution.sealedTexts}, ${execution.createdAt})`;

/** Requests the cancellation of those that have not ended. */
export async function requestCancelByIds(db: Queries, ids: string[], now: Date): Promise<void> {
  if (ids.length === 0) return;
  await db
    .updateTable("executions")
    .set({ cancelRequestedAt: now })
    .where("id", "in", ids)
    .where("completedAt", "is", null)
    .where("cancelRequestedAt", "is", null)
    .execute();
}

/** A change of a workflow's execution; left-out fields stay. */
export interface WorkflowChange {
  status: ExecutionStatus;
  sealedTexts?: string;
  errorCode?: string;
  errorMessage?: string;
  usage?: {
    promptTokens: number;
    completionTokens: number;
    costUsd: number;
    costKnown: boolean;
    estimated: boolean;
  };
  priceList?: string;
  durationMs?: number;
  completedAt?: Date;
}

/** A statement to which the caller appends a condition. The texts of a deleted row do not come back. */
export const updateWorkflowSql = (
  id: string,
  from: readonly ExecutionStatus[],
  change: WorkflowChange,
) => sql`
  update executions
     set status = ${change.status},
         sealed_texts = case when deleted_at is null then coalesce(${change.sealedTexts ?? null}, sealed_texts) end,
         error_code = coalesce(${change.errorCode ?? null}, error_code),
         error_message = coalesce(${change.errorMessage ?? null}, error_message),
         prompt_tokens = coalesce(${change.usage?.promptTokens ?? null}, prompt_tokens),
         completion_tokens = coalesce(${change.usage?.completionTokens ?? null}, completion_tokens),
         cost_usd = coalesce(${change.usage?.costUsd ?? null}, cost_usd),
         cost_known = coalesce(${change.usage?.costKnown ?? null}, cost_known),
         usage_estimated = coalesce(${change.usage?.estimated ?? null}, usage_estimated),
         price_list = coalesce(${change.priceList ?? null}, price_list),
         duration_ms = coalesce(${change.durationMs ?? null}, duration_ms),
         completed_at = coalesce(${change.completedAt ?? null}, completed_at)
   where id = ${id} and type = 'WORKFLOW' and status = any (${from})`;

/** Erases the texts; the row stays in the counts of its product. False: the execution has not ended, or runs again. */
export async function eraseExecution(db: Queries, id: string, now: Date): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("executions")
    .set({ deletedAt: now, sealedTexts: null })
    .where("id", "=", id)
    .where("completedAt", "is not", null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

const failAbandonedQuery = (db: Queries, now: Date) =>
  db
    .updateTable("executions")
    .set({
      status: "failed",
      errorCode: "INTERNAL_ERROR",
      errorMessage: "The process that ran this ended before it did.",
      completedAt: now,
    })
    .where("status", "=", "running")
    .where("type", "=", "PROMPT")
    .where("leaseUntil", "<", now);

/** Fails all prompt runs whose process died. */
export const failAllAbandoned = (db: Queries, now: Date) => failAbandonedQuery(db, now).execute();

export const failAbandonedRun = (db: Queries, id: string, now: Date) =>
  failAbandonedQuery(db, now).where("id", "=", id).execute();

/** Stores the output so far, for readers at other processes. */
export const updatePartialOutput = (db: Queries, id: string, sealed: string) =>
  sql`
    with shared as (
      update executions set sealed_texts = ${sealed}
       where id = ${id} and status = 'running' and deleted_at is null returning id)
    select pg_notify('execution_move', id::text) from shared`.execute(db);

/** `execution_watch`: the run has a reader at another process. `execution_move`: readers have more to read. */
export const notifyExecution = (db: Queries, what: "execution_watch" | "execution_move", id: string) =>
  sql`select pg_notify(${what}, ${id})`.execute(db);

/** Requests the cancellation of an execution that has not ended, and notifies every process. */
export const requestCancel = (db: Queries, id: string, now: Date) =>
  sql`
    with asked as (
      update executions set cancel_requested_at = coalesce(cancel_requested_at, ${now})
       where id = ${id} and completed_at is null returning id)
    select pg_notify('execution_cancel', id::text) from asked`.execute(db);

/** Cancels a prompt run whose process died. */
export const cancelAbandoned = (db: Queries, id: string, now: Date) =>
  db
    .updateTable("executions")
    .set({
      status: "canceled",
      completedAt: now,
      errorCode: "canceled",
      errorMessage: "The execution was canceled.",
    })
    .where("id", "=", id)
    .where("type", "=", "PROMPT")
    .where("status", "=", "running")
    .where("leaseUntil", "<", now)
    .execute();

export const listCancelRequests = (db: Queries, ids: readonly string[]) =>
  db
    .selectFrom("executions")
    .where("id", "in", [...ids])
    .where("cancelRequestedAt", "is not", null)
    .select(["id", "cancelReason as reason"])
    .$castTo<{ id: string; reason: AccountCancelReason | null }>()
    .execute();

/** Requests the cancellation of all executions of a user, and notifies every process. A trigger signals workflow runs. */
export const requestCancelByUser = (db: Queries, userId: string, reason: AccountCancelReason, now: Date) =>
  sql`
    with asked as (
      update executions set cancel_requested_at = coalesce(cancel_requested_at, ${now}), cancel_reason = ${reason}
       where user_id = ${userId} and deleted_at is null and completed_at is null returning id, type)
    select pg_notify('execution_cancel', id || ' ' || ${reason}::text) from asked where type = 'PROMPT'`.execute(
    db,
  );

export const eraseTextsBefore = (db: Queries, before: Date) =>
  db
    .updateTable("executions")
    .set({ sealedTexts: null })
    .where("createdAt", "<", before)
    .where("sealedTexts", "is not", null)
    .execute();

/** The rows stay in the counts of their products, without texts. The run of a workflow is deleted with them, so open ones end here. */
export async function eraseExecutionsOfUser(db: Queries, userId: string, now: Date): Promise<void> {
  await db
    .updateTable("executions")
    .set({ status: "canceled", errorCode: sql`cancel_reason`, completedAt: now })
    .where("userId", "=", userId)
    .where("type", "=", "WORKFLOW")
    .where("completedAt", "is", null)
    .execute();
  await db
    .updateTable("executions")
    .set({ deletedAt: now, sealedTexts: null, errorMessage: null })
    .where("userId", "=", userId)
    .execute();
}

/**
 * The hash of the version that ran. undefined: the run is older than the product's publication, so its version may have changed
 * since.
 */
export async function findContentHash(
  db: Queries,
  { productId, productVersion, createdAt }: Pick<ExecutionRow, "productId" | "productVersion" | "createdAt">,
): Promise<string | undefined> {
  const { rows } = await sql<{ hash: string }>`
    select encode(sha256(convert_to(v.content, 'UTF8')), 'hex') as hash
      from product_versions v join products p on p.id = v.product_id
     where p.id = ${productId} and v.version = ${productVersion} and p.first_published_at <= ${createdAt}`.execute(
    db,
  );
  return rows[0]?.hash;
}
