import { sql } from "kysely";
import { isSameProductSql } from "../../catalog/products/product-lookup.ts";
import { firstOf } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";
import { prepared } from "../../platform/db/prepared.ts";
import { readStatement } from "../../platform/db/statement.ts";
import type { ExecutionMode } from "../executions/queries.ts";
import {
  type CallEnd,
  endCallSql,
  isSameKeySql,
  isSameUnlimitedKeySql,
  type LateRefusal,
  openUnlimitedCallsSql,
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

/** A run with a stored key that has no limits, and the target that its process remembers. */
export interface UnlimitedRun {
  run: NewExecution;
  reservation: Reservation;
  remembered: RunTarget;
}

/** Not `sql.id`, which would write the name in snake case. */
const asked = (column: string) => sql.raw<string>(`asked."${column}"`);

const beginRunsSql = readStatement<
  Record<"runs" | "isSameProduct" | "isSameKey" | "calls", unknown>,
  { id: string }
>(new URL("./sql/begin-runs.sql", import.meta.url));

/** Inserts the runs whose targets the database still has, and returns their ids. */
export async function insertExecutions(db: Queries, runs: readonly UnlimitedRun[]): Promise<Set<string>> {
  const { rows } = await beginRunsSql({
    runs: JSON.stringify(runs.map(toInsertedRow)),
    isSameProduct: isSameProductSql(asked("userId"), {
      id: asked("productId"),
      revision: asked("productRevision"),
      major: asked("productMajor"),
    }),
    isSameKey: isSameUnlimitedKeySql(asked("keyId"), {
      sealedKey: asked("sealedKey"),
      status: asked("keyStatus"),
    }),
    calls: openUnlimitedCallsSql({ rows: sql`begun` }),
  }).execute(db);
  return new Set(rows.map(({ id }) => id));
}

const toInsertedRow = ({ run, reservation, remembered: { product, key } }: UnlimitedRun) => ({
  ...run,
  ...{ productRevision: product.revision, productMajor: product.major },
  ...{ keyId: reservation.providerKeyId, sealedKey: key.sealedKey, keyStatus: key.status },
  callId: reservation.callId,
  callStartedAt: reservation.startedAt,
  callLeaseUntil: reservation.leaseUntil,
});

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

/** The end of a run whose call has changed nothing of its key. */
export interface CompletedRun {
  id: string;
  end: ExecutionEnd;
  call: CallEnd;
}

const endRunsSql = readStatement<{ runs: string }, { id: string }>(
  new URL("./sql/end-runs.sql", import.meta.url),
);

/** Completes runs, except those that it would have to wait for. Returns the ids of the completed ones. */
export async function completeExecutions(db: Queries, runs: readonly CompletedRun[]): Promise<Set<string>> {
  const ends = runs.map(({ id, end, call }) => ({
    ...end,
    ...{ id, callId: call.callId, callUsd: call.costUsd, callEndedAt: call.endedAt },
  }));
  const { rows } = await endRunsSql({ runs: JSON.stringify(ends) }).execute(db);
  return new Set(rows.map(({ id }) => id));
}
