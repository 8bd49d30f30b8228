import { sql } from "kysely";
import { isSameProductSql } from "../../catalog/products/product-lookup.ts";
import { firstOf } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";
import { prepared } from "../../platform/db/prepared.ts";
import type { ExecutionMode } from "../executions/queries.ts";
import {
  type CallEnd,
  endCallSql,
  isSameKeySql,
  type LateRefusal,
  type Reservation,
  type ReservationResult,
  reserveCallSql,
} from "../provider-keys/queries.ts";
import type { RunTarget } from "./run-targets.ts";

export interface NewExecution {
  id: string;
  userId: string;
  productId: string;
  productVersion: string;
  providerKeyId: string | null;
  provider: string;
  model: string | null;
  mode: ExecutionMode;
  createdAt: Date;
  leaseUntil: Date;
}

/**
 * Inserts the run as running, unless a limit of its key refuses the call. `remembered`: only if the database still has this target;
 * else the result is `changed`.
 */
export async function insertExecution(
  db: Queries,
  run: NewExecution,
  reservation: Reservation | null,
  remembered: RunTarget | null,
): Promise<ReservationResult<LateRefusal>> {
  const name = `begin_${remembered ? "remembered_" : ""}run${reservation ? "" : "_without_key"}`;
  const reserving = reservation ? reserveCallSql(reservation) : sql<ReservationResult>`'{}'::jsonb`;
  const call = remembered
    ? sql`case when ${isUnchangedSql(run.userId, remembered)} then ${reserving} else '{"refusedBy": "changed"}' end`
    : reserving;
  const { rows } = await sql<{ call: ReservationResult<LateRefusal> }>`${prepared(name)}
    with reserved as materialized (select ${call} as call),
    written as (
      insert into executions (id, user_id, product_id, product_version, provider_key_id, provider, model, mode, status, lease_until, created_at)
      select ${run.id}::uuid, ${run.userId}::uuid, ${run.productId}::uuid, ${run.productVersion}, ${run.providerKeyId}::uuid,
             ${run.provider}, ${run.model}, ${run.mode}, 'running', ${run.leaseUntil}::timestamptz, ${run.createdAt}::timestamptz
        from reserved where call ->> 'refusedBy' is null)
    select call from reserved`.execute(db);
  return firstOf(rows).call;
}

/** In SQL: whether reading the target again would give the same. */
const isUnchangedSql = (userId: string, { product, key }: RunTarget) =>
  key.id === null
    ? isSameProductSql(userId, product)
    : sql`${isSameProductSql(userId, product)} and ${isSameKeySql(key.id, key)}`;

export interface ExecutionEnd {
  status: "completed" | "failed" | "canceled";
  model?: string;
  sealedTexts?: string | null;
  finishReason?: string;
  errorCode?: string;
  errorMessage?: string;
  /** JSON. */
  fault?: string;
  attempts: number;
  promptTokens?: number;
  completionTokens?: number;
  costUsd?: number;
  costKnown?: boolean;
  priceList?: string;
  usageEstimated?: boolean;
  durationMs: number;
  completedAt: Date;
}

/**
 * Ends a run that is still running: an abandoned run stays failed, and the texts of a deleted execution do not come back.
 * `call` ends with it when a stored key made one.
 */
export const endExecution = (db: Queries, id: string, end: ExecutionEnd, call: CallEnd | null) =>
  sql`${prepared("end_run")}
  with ${endCallSql(call)}
  update executions
     set status = ${end.status}, model = coalesce(${end.model ?? null}, model), finish_reason = ${end.finishReason ?? null},
         sealed_texts = case when deleted_at is null then ${end.sealedTexts ?? null} end,
         error_code = ${end.errorCode ?? null}, error_message = ${end.errorMessage ?? null}, fault = ${end.fault ?? null},
         attempts = ${end.attempts},
         prompt_tokens = ${end.promptTokens ?? null}, completion_tokens = ${end.completionTokens ?? null},
         cost_usd = ${end.costUsd ?? null}, cost_known = ${end.costKnown ?? null}, price_list = ${end.priceList ?? null},
         usage_estimated = ${end.usageEstimated ?? false}, duration_ms = ${end.durationMs}, completed_at = ${end.completedAt}
   where id = ${id} and status = 'running'`.execute(db);
