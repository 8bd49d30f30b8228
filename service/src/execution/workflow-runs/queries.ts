import { sql } from "kysely";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import { prepared } from "../../platform/db/prepared.ts";
import type { RunRow } from "./run-queries.ts";
import { NO_ITEM, type StepStatus } from "./run-state.ts";

export async function hasRunEnded(db: Queries, id: string): Promise<boolean> {
  const { rows } = await sql`${prepared("is_workflow_run_open")}
    select from executions where id = ${id} and completed_at is null`.execute(db);
  return rows.length === 0;
}

export interface WorkflowExecutionRow {
  productId: string;
  productVersion: string;
  status: RunRow["status"];
  sealedTexts: string | null;
  errorCode: string | null;
  errorMessage: string | null;
  promptTokens: number | null;
  completionTokens: number | null;
  costUsd: string | null;
  costKnown: boolean | null;
  usageEstimated: boolean;
  durationMs: number | null;
  createdAt: Date;
  completedAt: Date | null;
}

/** The columns of an ended execution, under the names of `EndedRow`. */
export const endedColumns = sql`
  product_id as "productId", product_version as "productVersion", status, error_code as "errorCode", error_message as "errorMessage",
  prompt_tokens as "promptTokens", completion_tokens as "completionTokens", cost_usd as "costUsd", cost_known as "costKnown",
  usage_estimated as "usageEstimated", duration_ms as "durationMs", created_at as "createdAt", completed_at as "completedAt", deleted_at`;

/** An execution that is not deleted, as JSON and without its texts. */
export interface EndedRow extends Omit<WorkflowExecutionRow, "sealedTexts" | "createdAt" | "completedAt"> {
  createdAt: string;
  completedAt: string;
}

export async function findWorkflowExecution(
  db: Queries,
  userId: string,
  id: string,
): Promise<WorkflowExecutionRow | undefined> {
  const { rows } = await sql<WorkflowExecutionRow>`${prepared("find_workflow_execution")}
    select product_id, product_version, status, sealed_texts,
           error_code, error_message, prompt_tokens,
           completion_tokens, cost_usd, cost_known, usage_estimated,
           duration_ms, created_at, completed_at
      from executions
     where id = ${id} and user_id = ${userId} and type = 'WORKFLOW' and deleted_at is null`.execute(db);
  return rows[0];
}

export interface StepListRow {
  stepId: string;
  item: number;
  type: "prompt" | "embedding" | "transform" | "map" | "approval" | "delay" | "product";
  status: StepStatus;
  attempt: number;
  repeats: number;
  called: string | null;
  dueAt: Date | null;
  sealedOutput: string | null;
  errorCode: string | null;
  errorMessage: string | null;
  provider: string | null;
  model: string | null;
  promptTokens: number | null;
  completionTokens: number | null;
  costUsd: string | null;
  costKnown: boolean | null;
  usageEstimated: boolean;
  decision: "approved" | "rejected" | null;
  decidedAt: Date | null;
  startedAt: Date | null;
  endedAt: Date | null;
}

const steps = (db: Queries, executionId: string) =>
  db
    .selectFrom("executionSteps")
    .where("executionId", "=", executionId)
    .select([
      "stepId",
      "item",
      "type",
      "status",
      "attempt",
      "repeats",
      "called",
      "dueAt",
      "sealedOutput",
      "errorCode",
      "errorMessage",
      "provider",
      "model",
      "promptTokens",
      "completionTokens",
      "costUsd",
      "costKnown",
      "usageEstimated",
      "decision",
      "decidedAt",
      "startedAt",
      "endedAt",
    ])
    .$castTo<StepListRow>();

export async function listSteps(
  db: Queries,
  executionId: string,
  paging: Paging,
): Promise<Page<StepListRow>> {
  const items = await steps(db, executionId)
    .orderBy("n", "desc")
    .limit(paging.limit)
    .offset(offsetOf(paging))
    .execute();
  const { total } = await db
    .selectFrom("executionSteps")
    .select((row) => row.fn.countAll<number>().as("total"))
    .where("executionId", "=", executionId)
    .executeTakeFirstOrThrow();
  return { items, total };
}

/** The step itself, not the items of a map. */
export const findStep = (db: Queries, executionId: string, stepId: string) =>
  steps(db, executionId).where("stepId", "=", stepId).where("item", "=", NO_ITEM).executeTakeFirst();

/** null: erased. */
export async function findSealedStart(db: Queries, executionId: string): Promise<string | null | undefined> {
  const row = await db
    .selectFrom("workflowRuns")
    .select("sealedStart")
    .where("executionId", "=", executionId)
    .executeTakeFirst();
  return row?.sealedStart;
}

export interface LockedRun {
  sealedStart: string | null;
  parentId: string | null;
}

/** Locks a run, so that its driver writes nothing until the transaction ends. */
export async function lockRun(tx: Tx, id: string): Promise<LockedRun | undefined> {
  const { rows } = await sql<LockedRun>`
    select sealed_start, parent_id from workflow_runs where execution_id = ${id} for update`.execute(tx);
  return rows[0];
}

/**
 * Locks each execution before its run, as checkpoints and cancellations do. Child runs come first, because the end of one locks its
 * parent. Any other order can deadlock.
 */
export const lockRunsOfUser = (tx: Tx, userId: string) =>
  sql`
    select from workflow_runs r join executions e on e.id = r.execution_id
     where r.user_id = ${userId} and r.due_at is not null
     order by r.execution_id desc for no key update of e for update of r`.execute(tx);

export const updateDecision = (
  tx: Tx,
  id: string,
  stepId: string,
  decision: "approved" | "rejected",
  at: Date,
) =>
  tx
    .updateTable("executionSteps")
    .set({ decision, decidedAt: at })
    .where("executionId", "=", id)
    .where("stepId", "=", stepId)
    .where("item", "=", NO_ITEM)
    .execute();

/** Signals a locked run: its driver must read the change before it writes. */
export const signalRun = (tx: Tx, id: string, now: Date) =>
  sql`
    update workflow_runs set signals = signals + 1, due_at = case when lease_token is null then ${now} else due_at end
     where execution_id = ${id}`.execute(tx);

/** Queues the unfinished steps of a run again; the others stay. */
export async function requeueRun(
  tx: Tx,
  id: string,
  refs: { stepId: string; item: number }[],
  now: Date,
): Promise<void> {
  await sql`
    update execution_steps s
       set status = 'queued', retries = 0, repeats = 0, called = null, due_at = null, error_code = null, error_message = null,
           decision = null, decided_at = null, started_at = null, ended_at = null
      from unnest(${refs.map(({ stepId }) => stepId)}::text[], ${refs.map(({ item }) => item)}::int[]) as place (step_id, item)
     where s.execution_id = ${id} and s.step_id = place.step_id and s.item = place.item`.execute(tx);
  await sql`
    delete from execution_events
     where execution_id = ${id} and type in ('execution.completed', 'execution.failed', 'execution.canceled')`.execute(
    tx,
  );
  await sql`
    insert into execution_events (execution_id, seq, type, data, created_at)
    select ${id}, coalesce(max(seq), 0) + 2, 'execution.queued', '{}', ${now} from execution_events where execution_id = ${id}`.execute(
    tx,
  );
  await sql`
    update workflow_runs set due_at = ${now}, lease_token = null, leases = 0, signals = signals + 1 where execution_id = ${id}`.execute(
    tx,
  );
}

export interface ExecutionEventRow {
  seq: number;
  type: string;
  data: Record<string, unknown>;
  createdAt: Date;
}

const EVENT_BATCH = 100;

export async function listEventsAfter(db: Queries, id: string, after: number): Promise<ExecutionEventRow[]> {
  const { rows } = await sql<ExecutionEventRow>`
    select seq, type, data, created_at from execution_events
     where execution_id = ${id} and seq > ${after} order by seq limit ${EVENT_BATCH}`.execute(db);
  return rows;
}

export async function findLastEvent(db: Queries, id: string): Promise<ExecutionEventRow | undefined> {
  const { rows } = await sql<ExecutionEventRow>`
    select seq, type, data, created_at from execution_events
     where execution_id = ${id} order by seq desc limit 1`.execute(db);
  return rows[0];
}

const ERASE_BATCH = 100;

/** Erases the texts of a batch of ended runs with smaller ids. Returns how many. */
export async function eraseRunTexts(db: Queries, before: string): Promise<number> {
  const { rows } = await sql`
    with old as (
      update workflow_runs set sealed_start = null, sealed_result = null
       where execution_id in (select execution_id from workflow_runs
                               where execution_id < ${before} and due_at is null and (sealed_start is not null or sealed_result is not null)
                               order by execution_id limit ${ERASE_BATCH} for update skip locked)
      returning execution_id),
    steps as (
      update execution_steps s set sealed_output = null from old where s.execution_id = old.execution_id and sealed_output is not null)
    select from old`.execute(db);
  return rows.length;
}
