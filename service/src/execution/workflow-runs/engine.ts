import type { Context } from "../../core/context.ts";
import type { Evaluator } from "../../formats/workflow-definition/evaluator.ts";
import { type Decision, decideApproval } from "./approvals.ts";
import { insertWorkflowExecution, type NewWorkflowRun } from "./new-execution.ts";
import { retryRun } from "./retry-run.ts";
import type { RunRef } from "./sealed-texts.ts";
import { waitForEnd } from "./wait-for-end.ts";
import { WorkflowWorker } from "./worker.ts";

/** All that the verbs know of whatever runs workflows durably (docs/decisions/0030-workflow-engine.md). */
export interface WorkflowEngine {
  /** Begins a run that has been checked; it goes on whatever becomes of this process. Answers the execution's id. */
  start(ctx: Context, userId: string, newRun: NewWorkflowRun): Promise<string>;
  /** Says yes or no to an approval that waits. Throws STEP_NOT_FOUND, or INVALID_STATE where it does not. */
  decide(ctx: Context, run: RunRef, stepId: string, decision: Decision): Promise<void>;
  /** Runs on what failed or was canceled, without what had completed. False: it has not ended so. */
  retry(ctx: Context, run: RunRef): Promise<boolean>;
  /** Resolves with whether a run has ended by then, in milliseconds. */
  hasEndedWithin(ctx: Context, id: string, ms: number): Promise<boolean>;
  /** What does the work, in any number of processes. */
  worker(ctx: Context, evaluator: Evaluator): { start(): void; stop(): Promise<void> };
}

/** Runs as rows of PostgreSQL, driven by whoever holds their lease. */
export const engine: WorkflowEngine = {
  start: insertWorkflowExecution,
  decide: decideApproval,
  retry: retryRun,
  hasEndedWithin: waitForEnd,
  worker: (ctx, evaluator) => new WorkflowWorker(ctx, evaluator),
};
