import { sql } from "kysely";
import type { Queries } from "../../platform/db/database.ts";
import { prepared } from "../../platform/db/prepared.ts";
import type { ExecutionMode } from "../executions/queries.ts";
import {
  type CallEnd,
  endCallSql,
  type Reservation,
  type ReservationResult,
  reserveCallSql,
} from "../provider-keys/queries.ts";

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

/** Writes the run as running, unless a limit of its key stands against its call. */
export async function insertExecution(
  db: Queries,
  run: NewExecution,
  reservation: Reservation | null,
): Promise<ReservationResult> {
  const name = reservation ? "begin_run" : "begin_run_without_key";
  const reserving = reservation ? reserveCallSql(reservation) : sql<ReservationResult>`'{}'::jsonb`;
  const { rows } = await sql<{ call: ReservationResult }>`${prepared(name)}
    with reserved as materialized (select ${reserving} as call),
    written as (
      insert into executions (id, user_id, product_id, product_version, provider_key_id, provider, model, mode, status, lease_until, created_at)
      select ${run.id}::uuid, ${run.userId}::uuid, ${run.productId}::uuid, ${run.productVersion}, ${run.providerKeyId}::uuid,
             ${run.provider}, ${run.model}, ${run.mode}, 'running', ${run.leaseUntil}::timestamptz, ${run.createdAt}::timestamptz
        from reserved where call ->> 'refusedBy' is null)
    select call from reserved`.execute(db);
  return rows[0]!.call;
}

export interface ExecutionEnd {
  status: "completed" | "failed" | "canceled";
  model?: string;
  sealed_texts?: string | null;
  finish_reason?: string;
  error_code?: string;
  error_message?: string;
  /** JSON. */
  fault?: string;
  attempts: number;
  prompt_tokens?: number;
  completion_tokens?: number;
  cost_usd?: number;
  cost_known?: boolean;
  price_list?: string;
  usage_estimated?: boolean;
  duration_ms: number;
  completed_at: Date;
}

/**
 * Only a running one ends: what was declared dead stays so, and texts of one that was deleted meanwhile do not come back.
 * `call` ends with it, if a stored key made one.
 */
export const endExecution = (db: Queries, id: string, end: ExecutionEnd, call: CallEnd | null) =>
  sql`${prepared("end_run")}
  with ${endCallSql(call)}
  update executions
     set status = ${end.status}, model = coalesce(${end.model ?? null}, model), finish_reason = ${end.finish_reason ?? null},
         sealed_texts = case when deleted_at is null then ${end.sealed_texts ?? null} end,
         error_code = ${end.error_code ?? null}, error_message = ${end.error_message ?? null}, fault = ${end.fault ?? null},
         attempts = ${end.attempts},
         prompt_tokens = ${end.prompt_tokens ?? null}, completion_tokens = ${end.completion_tokens ?? null},
         cost_usd = ${end.cost_usd ?? null}, cost_known = ${end.cost_known ?? null}, price_list = ${end.price_list ?? null},
         usage_estimated = ${end.usage_estimated ?? false}, duration_ms = ${end.duration_ms}, completed_at = ${end.completed_at}
   where id = ${id} and status = 'running'`.execute(db);
