import type { Context } from "../../core/context.ts";
import { PRICE_LIST } from "../provider-keys/cost.ts";
import {
  type ExecutionMode,
  type ExecutionStatus,
  insertWorkflowSql,
  updateWorkflowSql,
  type WorkflowChange,
} from "./queries.ts";
import { type ExecutionRef, type ExecutionTexts, sealTexts } from "./texts.ts";

export interface NewWorkflowExecution extends ExecutionRef {
  productId: string;
  productVersion: string;
  mode: ExecutionMode;
  /** null: nothing is to be stored. */
  texts: ExecutionTexts | null;
}

/** A workflow's row in the history, `queued`: a part of the statement of the engine that will run it. */
export const insertWorkflowExecutionSql = (ctx: Context, { texts, ...execution }: NewWorkflowExecution) =>
  insertWorkflowSql({
    ...execution,
    sealedTexts: texts && sealTexts(ctx, execution, texts),
    createdAt: ctx.now(),
  });

export interface WorkflowTransition {
  from: readonly ExecutionStatus[];
  to: ExecutionStatus;
  /** In the place of what was kept so far; left out, that stays. */
  texts?: ExecutionTexts;
  error?: { code: string; message: string };
  /** The sums of its steps. */
  usage?: NonNullable<WorkflowChange["usage"]>;
  durationMs?: number;
}

const END_STATUSES: ReadonlySet<ExecutionStatus> = new Set<ExecutionStatus>([
  "completed",
  "failed",
  "canceled",
]);

/** Moves a workflow's row out of a state of `from`: a part of the engine's own statement (`with …`), which adds when. */
export const updateWorkflowExecutionSql = (ctx: Context, execution: ExecutionRef, move: WorkflowTransition) =>
  updateWorkflowSql(execution.id, move.from, {
    status: move.to,
    ...(move.texts && { sealedTexts: sealTexts(ctx, execution, move.texts) }),
    ...(move.error && { errorCode: move.error.code, errorMessage: move.error.message }),
    ...(move.usage && { usage: move.usage, priceList: PRICE_LIST }),
    ...(move.durationMs !== undefined && { durationMs: move.durationMs }),
    ...(END_STATUSES.has(move.to) && { completedAt: ctx.now() }),
  });
