import { type RawBuilder, sql } from "kysely";
import { isSameProductSql } from "../../catalog/products/product-lookup.ts";
import { firstOf } from "../../core/required.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { prepared } from "../../platform/db/prepared.ts";
import { readSql, readStatement } from "../../platform/db/statement.ts";
import { type AccountCancelReason, updateWorkflowSql, type WorkflowChange } from "../executions/queries.ts";
import type { RunProduct } from "../prompt-runs/run-targets.ts";
import {
  isSameKeyRowSql,
  isSameOpenedKeySql,
  type LateRefusal,
  type OpenCall,
  openUnlimitedCallsSql,
  type Reserved,
  toKeyRow,
  toMoveCallsSql,
  toUnlimitedCallRow,
} from "../provider-keys/provider-calls.ts";
import type { SealedKey } from "../provider-keys/provider-keys.ts";
import type { CallChanges } from "./pending-calls.ts";
import { type EndedRow, endedColumns } from "./queries.ts";
import type { StepRun, StepStatus } from "./run-state.ts";

export interface NewRun {
  id: string;
  userId: string;
  sealedStart: string;
  dueAt: Date;
  /** The lease of the worker that drives the run at once; null: any worker claims it. */
  lease: Lease | null;
  depth: number;
  parent: { id: string; stepId: string; item: number; attempt: number } | null;
}

interface RunValues extends Omit<NewRun, "parent" | "lease"> {
  history: RawBuilder<unknown>;
  leaseToken: string | null;
  leaseWorker: number | null;
  leases: number;
  parentId: string | null;
  parentStep: string | null;
  parentItem: number | null;
  parentAttempt: number | null;
  createdAt: Date;
}

const insertRunSql = readStatement<RunValues>(new URL("./sql/insert-run.sql", import.meta.url));

/** Inserts a run with its execution (`history`) and its first event, and wakes the workers if it has no lease. */
export const insertRun = (
  db: Queries,
  { parent, lease, ...run }: NewRun,
  history: RawBuilder<unknown>,
  createdAt: Date,
) =>
  insertRunSql({
    ...run,
    history,
    leaseToken: lease?.token ?? null,
    leaseWorker: lease?.worker ?? null,
    leases: lease ? 1 : 0,
    parentId: parent?.id ?? null,
    parentStep: parent?.stepId ?? null,
    parentItem: parent?.item ?? null,
    parentAttempt: parent?.attempt ?? null,
    createdAt,
  }).execute(db);

/** Wakes the workers and the requests that wait for this run. */
export const notifyRun = (db: Queries, id: string) =>
  sql`${prepared("notify_workflow_run")}select pg_notify('workflow_run', ${id})`.execute(db);

export interface ClaimedRun {
  id: string;
  userId: string;
  token: string;
  leases: number;
}

export interface Lease {
  now: Date;
  until: Date;
  token: string;
  /** The key of the worker's session lock; null: the lease ends only by time. */
  worker: number | null;
}

export interface ClaimOptions {
  /** Runs that the caller drives already. */
  held: readonly string[];
  /** Accounts whose runs are not claimed now. */
  excludedUsers: readonly string[];
  limit: number;
  /** Also runs whose lease is over. */
  includesExpired: boolean;
}

const claimRunsSql = readStatement<Lease & ClaimOptions, ClaimedRun>(
  new URL("./sql/claim-runs.sql", import.meta.url),
);
const claimRunsOfOthersSql = readSql<Lease & ClaimOptions, ClaimedRun>(
  new URL("./sql/claim-runs-of-others.sql", import.meta.url),
);

/** Leases the due runs that have waited longest. */
export async function claimRuns(db: Queries, lease: Lease, options: ClaimOptions): Promise<ClaimedRun[]> {
  const claimSql = options.excludedUsers.length === 0 ? claimRunsSql : claimRunsOfOthersSql;
  const { rows } = await claimSql({ ...lease, ...options }).execute(db);
  return rows;
}

/** The workers that hold leases now. `until`: the end of the latest lease. */
export async function listLeasingWorkers(db: Queries, now: Date, until: Date): Promise<number[]> {
  const { rows } = await sql<{ worker: number }>`${prepared("list_run_workers")}
    select distinct lease_worker as worker from workflow_runs
     where due_at > ${now} and due_at <= ${until} and lease_token is not null and lease_worker is not null`.execute(
    db,
  );
  return rows.map(({ worker }) => worker);
}

/** Makes the leased runs of dead workers due. Returns how many there were. */
export async function releaseLeasesOf(db: Queries, dead: number[], now: Date, until: Date): Promise<number> {
  const { numAffectedRows } = await sql`
    with lost as (
      select execution_id from workflow_runs
       where due_at > ${now} and due_at <= ${until} and lease_token is not null
         and lease_worker = any (${dead}::integer[])
       order by execution_id desc for no key update skip locked)
    update workflow_runs r set lease_token = null, due_at = ${now}
      from lost where r.execution_id = lost.execution_id`.execute(db);
  return Number(numAffectedRows ?? 0);
}

/** Renews leases and returns the signal count of each that is still held. Locks rows in the order of `lockRunsOfUser`. */
export async function renewLeases(
  db: Queries,
  held: readonly { id: string; token: string }[],
  until: Date,
): Promise<Map<string, number>> {
  const { rows } = await sql<{ id: string; signals: number }>`
    with locked as (
      select r.execution_id
        from unnest(${held.map(({ id }) => id)}::uuid[], ${held.map(({ token }) => token)}::uuid[]) as held (id, token)
        join workflow_runs r on r.execution_id = held.id and r.lease_token = held.token
       order by r.execution_id desc for no key update of r)
    update workflow_runs r set due_at = ${until}
      from locked where r.execution_id = locked.execution_id
    returning r.execution_id as id, r.signals`.execute(db);
  return new Map(rows.map(({ id, signals }) => [id, signals]));
}

/** Ends the lease of a run without a checkpoint; the run is due again at `dueAt`. `isForgiven`: the lease does not count as a crash. */
export const releaseLease = (
  db: Queries,
  held: { id: string; token: string },
  dueAt: Date,
  { isForgiven }: { isForgiven: boolean },
) =>
  sql`
    update workflow_runs
       set lease_token = null, due_at = ${dueAt}, leases = greatest(leases - ${isForgiven ? 1 : 0}, 0)
     where execution_id = ${held.id} and lease_token = ${held.token}`.execute(db);

export interface RunRow {
  hasSteps: boolean;
  sealedStart: string | null;
  depth: number;
  status: "queued" | "running" | "waiting" | "completed" | "failed" | "canceled";
  productId: string;
  productVersion: string;
  createdAt: Date;
  lastSeq: number;
  parentId: string | null;
  /** Whether the owner of the run is banned; null: the first checkpoint finds out. */
  isOwnerBanned: boolean | null;
}

/** Requests to a run from outside: cancels, decisions, ends of child runs. */
export interface RunSignals {
  signals: number;
  cancelRequestedAt: Date | null;
  cancelReason: AccountCancelReason | null;
  decisions: { stepId: string; decision: "approved" | "rejected"; decidedAt: string }[];
  /** Ended child runs of its steps. */
  ends: { id: string; stepId: string; item: number; attempt: number; sealedResult: string }[];
}

const signalColumns = sql`
  r.signals, e.cancel_requested_at, e.cancel_reason,
  (select coalesce(json_agg(json_build_object('stepId', step_id, 'decision', decision, 'decidedAt', decided_at)), '[]')
     from execution_steps s where s.execution_id = r.execution_id and decision is not null) as decisions,
  (select coalesce(json_agg(json_build_object('id', c.execution_id, 'stepId', c.parent_step, 'item', c.parent_item,
                                              'attempt', c.parent_attempt, 'sealedResult', c.sealed_result)), '[]')
     from workflow_runs c where c.parent_id = r.execution_id and c.sealed_result is not null) as ends`;

/** The state from which a driver starts, in one snapshot. undefined: another worker has the lease, or the run was deleted. */
export async function readLeasedRun(
  db: Queries,
  { id, token }: { id: string; token: string },
): Promise<(RunRow & RunSignals) | undefined> {
  const { rows } = await sql<RunRow & RunSignals>`${prepared("open_workflow_run")}
    select r.sealed_start, r.depth, e.status, e.product_id, e.product_version, e.created_at, r.parent_id,
           u.banned_at is not null as "isOwnerBanned",
           (select coalesce(max(seq), 0) from execution_events v where v.execution_id = r.execution_id) as "lastSeq",
           exists (select from execution_steps s where s.execution_id = r.execution_id) as "hasSteps", ${signalColumns}
      from workflow_runs r join executions e on e.id = r.execution_id join users u on u.id = r.user_id
     where r.execution_id = ${id} and r.lease_token = ${token}`.execute(db);
  return rows[0];
}

/** undefined: another worker has the lease, or the run was deleted. */
export async function readSignals(
  db: Queries,
  { id, token }: { id: string; token: string },
): Promise<RunSignals | undefined> {
  const { rows } = await sql<RunSignals>`${prepared("read_run_signals")}
    select ${signalColumns} from workflow_runs r join executions e on e.id = r.execution_id
     where r.execution_id = ${id} and r.lease_token = ${token}`.execute(db);
  return rows[0];
}

export interface StepRow extends Omit<StepRun, "output" | "error" | "usage" | "decision" | "decidedAt"> {
  type: string;
  sealedOutput: string | null;
  errorCode: string | null;
  errorMessage: string | null;
  promptTokens: number | null;
  completionTokens: number | null;
  costUsd: number | null;
  costKnown: boolean | null;
  estimated: boolean;
}

export interface NewEventRow {
  seq: number;
  type: string;
  data: unknown;
  createdAt: Date;
}

export interface Checkpoint {
  /** When a worker must claim the run again: the end of the lease, or without a lease the next timer; null: never. */
  dueAt: Date | null;
  keepsLease: boolean;
  /** A lease that lasts longer than this is not renewed. */
  renewedUntil: Date | null;
  /** Writes nothing if the owner is banned. */
  checksOwner: boolean;
  /** Of an open execution. Its row is locked first, as by a cancellation and a deletion: the other order would deadlock. */
  change: WorkflowChange | null;
  /** Notifies requests that wait for the end of the run. */
  notifiesEnd: boolean;
  /** Returns the ended execution. */
  returnsEnd: boolean;
  steps: StepRow[];
  events: NewEventRow[];
  callChanges: CallChanges;
}

/** The lease of a driver, and the signals that it has read. */
export interface RunLease {
  id: string;
  userId: string;
  token: string;
  signals: number;
}

export interface CheckpointResult {
  /** `signaled`: the run has unread signals, or its owner is banned. `lost`: another worker has the lease. Neither writes anything. */
  status: "written" | "signaled" | "lost";
  /** The reservations of the new calls, by their ids. */
  reservations: Record<string, Reserved<LateRefusal>>;
  isOwnerBanned: boolean;
  /** null: not requested, or the execution was deleted. */
  endedRow: EndedRow | null;
}

interface CheckpointValues
  extends RunLease,
    Pick<Checkpoint, "dueAt" | "keepsLease" | "renewedUntil" | "checksOwner" | "notifiesEnd"> {
  history: RawBuilder<unknown>;
  isHistoryLocked: RawBuilder<unknown>;
  move: RawBuilder<unknown>;
  /** JSON. */
  steps: string;
  /** JSON. */
  events: string;
  updateStep: RawBuilder<unknown>;
  calls: RawBuilder<unknown>;
  reservations: RawBuilder<unknown>;
  endedRow: RawBuilder<unknown>;
}

type CheckpointRow = { isHeld: boolean; isWritten: boolean } & Omit<CheckpointResult, "status">;

const updateStep = readSql(new URL("./sql/update-step.sql", import.meta.url))({});

const CHECKPOINT_FILE = new URL("./sql/write-checkpoint.sql", import.meta.url);
const writeCheckpointSql = readStatement<CheckpointValues, CheckpointRow>(CHECKPOINT_FILE);
const writeCheckpointAndMoveSql = readStatement<CheckpointValues, CheckpointRow>(CHECKPOINT_FILE, "and_move");
const writeCheckpointAndEndSql = readStatement<CheckpointValues, CheckpointRow>(CHECKPOINT_FILE, "and_end");
const NOTHING = sql``;
const isHeldSql = sql`exists (select from held)`;
const OPEN = ["queued", "running", "waiting"] as const;

/** The parts of a checkpoint that also changes the execution. */
const toMoveSql = (id: string, change: WorkflowChange, returnsEnd: boolean) => ({
  history: sql`history as (select from executions where id = ${id} for no key update),`,
  isHistoryLocked: sql`and exists (select from history)`,
  move: sql`moved as (${updateWorkflowSql(id, OPEN, change)} and ${isHeldSql} ${returnsEnd ? sql`returning ${endedColumns}` : NOTHING}),`,
  endedRow: returnsEnd ? sql`(select to_jsonb(moved) from moved where deleted_at is null)` : sql`null::jsonb`,
});
const noMoveSql = { history: NOTHING, isHistoryLocked: NOTHING, move: NOTHING, endedRow: sql`null::jsonb` };

/** Writes a checkpoint if the lease is still held and no signal is unread. */
export async function writeCheckpoint(
  db: Queries,
  { id, userId, token, signals }: RunLease,
  { change, returnsEnd, steps, events, callChanges, ...checkpoint }: Checkpoint,
): Promise<CheckpointResult> {
  const calls = toMoveCallsSql(callChanges, isHeldSql);
  const values = {
    ...{ id, userId, token, signals, ...checkpoint },
    ...(change ? toMoveSql(id, change, returnsEnd) : noMoveSql),
    steps: JSON.stringify(steps),
    events: JSON.stringify(events),
    updateStep,
    calls: calls.parts,
    reservations: calls.reserved,
  };
  const write = change
    ? returnsEnd
      ? writeCheckpointAndEndSql
      : writeCheckpointAndMoveSql
    : writeCheckpointSql;
  const { rows } = await write(values).execute(db);
  const { isWritten, isHeld, ...result } = firstOf(rows);
  return { status: isWritten ? "written" : isHeld ? "signaled" : "lost", ...result };
}

export interface LeasedCheckpoint {
  lease: RunLease;
  checkpoint: Checkpoint;
}

const insertStepsSql = readSql<{
  rows: RawBuilder<unknown>;
  steps: string;
  events: string;
  updateStep: RawBuilder<unknown>;
}>(new URL("./sql/insert-steps.sql", import.meta.url));

interface CheckpointsValues extends Record<"checkpoints" | "ended" | "opened", string> {
  ids: string[];
  endedIds: string[];
  from: readonly string[];
  isSameKey: RawBuilder<unknown>;
  steps: RawBuilder<unknown>;
  calls: RawBuilder<unknown>;
  endedColumns: RawBuilder<unknown>;
}

const writeCheckpointsSql = readStatement<CheckpointsValues, { id: string; endedRow: EndedRow | null }>(
  new URL("./sql/write-checkpoints.sql", import.meta.url),
);

/** Writes checkpoints of different runs, and returns the written ones by run. It leaves out those for which it would have to wait. */
export async function writeCheckpoints(
  db: Queries,
  checkpoints: readonly LeasedCheckpoint[],
): Promise<Map<string, CheckpointResult>> {
  const rowsOf = <Row extends object>(list: (checkpoint: Checkpoint) => readonly Row[]) =>
    checkpoints.flatMap(({ lease, checkpoint }) =>
      list(checkpoint).map((row) => ({ ...row, runId: lease.id })),
    );
  const ended = rowsOf(({ callChanges }) => callChanges.ended.map(toCallEndRow));
  const { rows } = await writeCheckpointsSql({
    ids: checkpoints.map(({ lease }) => lease.id),
    checkpoints: JSON.stringify(checkpoints.map(toCheckpointRow)),
    from: OPEN,
    ended: JSON.stringify(ended),
    endedIds: ended.map(({ callId }) => callId),
    opened: JSON.stringify(
      checkpoints.flatMap(({ checkpoint }) => checkpoint.callChanges.opened.map(toUnlimitedCallRow)),
    ),
    steps: insertStepsSql({
      updateStep,
      rows: sql`held`,
      steps: JSON.stringify(rowsOf(({ steps }) => steps)),
      events: JSON.stringify(rowsOf(({ events }) => events)),
    }),
    isSameKey: isSameOpenedKeySql,
    calls: openUnlimitedCallsSql({ rows: sql`begun` }),
    endedColumns,
  }).execute(db);
  const unlimited = { status: "written", reservations: {}, isOwnerBanned: false } as const;
  return new Map(rows.map(({ id, endedRow }) => [id, { ...unlimited, endedRow }]));
}

const toCallEndRow = ({ callId, costUsd, endedAt }: CallChanges["ended"][number]) => ({
  callId,
  costUsd,
  endedAt,
});

const toCheckpointRow = ({ lease, checkpoint }: LeasedCheckpoint) => {
  const { dueAt, keepsLease, renewedUntil, checksOwner, returnsEnd, change, callChanges } = checkpoint;
  const { status = null, usage, ...columns } = change ?? {};
  return {
    ...lease,
    ...{ dueAt, keepsLease, renewedUntil, checksOwner, returnsEnd, callEnds: callChanges.ended.length },
    ...{ newStatus: status, ...usage, ...columns },
  };
};

/** The first steps of a run, with calls of keys without limits. */
export interface FirstSteps {
  steps: StepRow[];
  events: NewEventRow[];
  opened: readonly OpenCall[];
}

/** A run of a target that its process remembers, under the lease of its worker. */
export interface StartedRun extends Pick<NewRun, "id" | "userId" | "sealedStart"> {
  product: RunProduct;
  keys: readonly SealedKey[];
  sealedTexts: string;
  createdAt: Date;
  lease: Lease;
  /** null: the run is queued. */
  first: FirstSteps | null;
}

interface StartValues extends Record<"runs" | "keys" | "opened", string> {
  isSameProduct: RawBuilder<unknown>;
  isSameKey: RawBuilder<unknown>;
  steps: RawBuilder<unknown>;
  calls: RawBuilder<unknown>;
}

const startRunsSql = readStatement<StartValues, { id: string }>(
  new URL("./sql/start-runs.sql", import.meta.url),
);

/** Not `sql.id`, which would write the name in snake case. */
const asked = (column: string) => sql.raw<string>(`asked."${column}"`);

/** Inserts runs, and returns the ids of those whose targets the database still has. */
export async function startRuns(db: Queries, runs: readonly StartedRun[]): Promise<Set<string>> {
  const { rows } = await startRunsSql({
    runs: JSON.stringify(runs.map(toStartedRow)),
    keys: JSON.stringify(runs.flatMap(toKeyRows)),
    opened: JSON.stringify(runs.flatMap(({ first }) => first?.opened.map(toUnlimitedCallRow) ?? [])),
    isSameProduct: isSameProductSql(asked("userId"), {
      id: asked("productId"),
      revision: asked("productRevision"),
      major: asked("productMajor"),
    }),
    isSameKey: isSameKeyRowSql,
    steps: insertStepsSql({
      updateStep,
      rows: sql`begun`,
      steps: JSON.stringify(
        runs.flatMap(({ id, first }) => first?.steps.map((step) => ({ ...step, runId: id })) ?? []),
      ),
      events: JSON.stringify(runs.flatMap(toFirstEvents)),
    }),
    calls: openUnlimitedCallsSql({ rows: sql`opened` }),
  }).execute(db);
  return new Set(rows.map(({ id }) => id));
}

const toStartedRow = ({ product, keys: _, lease, first, ...run }: StartedRun) => ({
  ...run,
  ...{ productId: product.id, productRevision: product.revision, productMajor: product.major },
  ...{ productVersion: product.version, newStatus: first ? "running" : "queued" },
  ...{ dueAt: lease.until, leaseToken: lease.token, leaseWorker: lease.worker, leases: first ? 0 : 1 },
});

const toKeyRows = ({ id, keys }: StartedRun) =>
  keys.flatMap((key) => (key.id === null ? [] : { runId: id, ...toKeyRow(key.id, key) }));

const toFirstEvents = ({ id, createdAt, first }: StartedRun) => [
  { runId: id, seq: 1, type: "execution.queued", data: {}, createdAt },
  ...(first?.events.map((event) => ({ ...event, runId: id })) ?? []),
];

interface StoredStepRow extends Omit<StepRow, "type" | "costUsd"> {
  costUsd: string | null;
  decision: StepRun["decision"];
  decidedAt: Date | null;
  status: StepStatus;
}

export async function listAllSteps(db: Queries, id: string): Promise<StoredStepRow[]> {
  const { rows } = await sql<StoredStepRow>`${prepared("list_all_steps")}
    select step_id, item, n, status, attempt, retries, repeats, items, called as "childRunId", due_at, sealed_output, error_code, error_message,
           provider, model, prompt_tokens, completion_tokens, cost_usd, cost_known, usage_estimated as estimated, decision, decided_at,
           started_at, ended_at
      from execution_steps where execution_id = ${id} order by n`.execute(db);
  return rows;
}

/** Stores the result of a child run and signals its parent. */
export async function reportToParent(
  db: Queries,
  id: string,
  sealedResult: string,
  now: Date,
): Promise<void> {
  await sql`
    with ended as (
      update workflow_runs set sealed_result = ${sealedResult} where execution_id = ${id} and parent_id is not null returning parent_id)
    update workflow_runs p set signals = p.signals + 1, due_at = case when p.lease_token is null then ${now} else p.due_at end
      from ended where p.execution_id = ended.parent_id and p.due_at is not null`.execute(db);
}

/** The child run that an attempt of a step started. The parent is locked, so that a concurrent look-up waits. */
export async function findChildRun(
  tx: Tx,
  parent: NonNullable<NewRun["parent"]>,
): Promise<string | undefined> {
  await sql`select from workflow_runs where execution_id = ${parent.id} for update`.execute(tx);
  const row = await tx
    .selectFrom("workflowRuns")
    .select("executionId as id")
    .where("parentId", "=", parent.id)
    .where("parentStep", "=", parent.stepId)
    .where("parentItem", "=", parent.item)
    .where("parentAttempt", "=", parent.attempt)
    .executeTakeFirst();
  return row?.id;
}
