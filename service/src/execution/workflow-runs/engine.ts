import type { Context } from "../../core/context.ts";
import type { Evaluator } from "../../formats/workflow-definition/evaluator.ts";
import type { Tx } from "../../platform/db/database.ts";
import type { ExecutionRef } from "../executions/texts.ts";
import { type Decision, decideApproval } from "./approvals.ts";
import {
  insertRememberedExecution,
  insertWorkflowExecution,
  insertWorkflowExecutionIn,
  type NewWorkflowRun,
} from "./new-execution.ts";
import { retryRun } from "./retry-run.ts";
import type { RunInput } from "./sealed-texts.ts";
import { type AwaitedEnd, waitForEnd } from "./wait-for-end.ts";
import { WorkflowWorker } from "./worker.ts";
import type { WorkflowTarget } from "./workflow-targets.ts";

/** The interface of the durable workflow engine (docs/decisions/0030-workflow-engine.md). */
export interface WorkflowEngine {
  /** Starts a checked run, which does not depend on this process. Returns the id of the execution. */
  start(ctx: Context, userId: string, newRun: NewWorkflowRun): Promise<string>;
  /** As `start`, of a target that this process remembers. null: nothing is started, because the target must be read. */
  startRemembered(
    ctx: Context,
    userId: string,
    newRun: RunInput,
    target: WorkflowTarget,
  ): Promise<string | null>;
  /** Starts a run if and only if the caller's transaction commits. */
  startIn(ctx: Context, tx: Tx, userId: string, newRun: NewWorkflowRun): Promise<string>;
  /** Approves or rejects a waiting step. Throws STEP_NOT_FOUND, or INVALID_STATE if the step does not wait. */
  decide(ctx: Context, run: ExecutionRef, stepId: string, decision: Decision): Promise<void>;
  /** Retries a failed or canceled run after its completed steps. False: the run has another status. */
  retry(ctx: Context, run: ExecutionRef): Promise<boolean>;
  /** Waits at most `ms` for the end of a run. */
  waitForEnd(ctx: Context, id: string, ms: number): Promise<AwaitedEnd>;
  /** The worker that drives runs; each of many processes may have one. */
  worker(ctx: Context, evaluator: Evaluator): { start(): void; stop(): Promise<void> };
}

/** Runs are rows of PostgreSQL; the worker that holds the lease drives a run. */
export const engine: WorkflowEngine = {
  start: insertWorkflowExecution,
  startRemembered: insertRememberedExecution,
  startIn: insertWorkflowExecutionIn,
  decide: decideApproval,
  retry: retryRun,
  waitForEnd,
  worker: (ctx, evaluator) => new WorkflowWorker(ctx, evaluator, { presence: ctx.presence }),
};
