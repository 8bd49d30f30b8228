import type { Context } from "../../core/context.ts";
import { PRICE_LIST } from "../provider-keys/cost.ts";
import {
  type ExecutionMode,
  type ExecutionStatus,
  insertWorkflowSql,
  type WorkflowChange,
} from "./queries.ts";
import { type ExecutionRef, type ExecutionTexts, sealTexts } from "./texts.ts";

export interface NewWorkflowExecution extends ExecutionRef {
  productId: string;
  productVersion: string;
  mode: ExecutionMode;
  /** null: no texts to store. */
  texts: ExecutionTexts | null;
}

/** The part of the engine's statement that inserts a workflow's execution as `queued`. */
export const insertWorkflowExecutionSql = (ctx: Context, { texts, ...execution }: NewWorkflowExecution) =>
  insertWorkflowSql({
    ...execution,
    sealedTexts: texts && sealTexts(ctx, execution, texts),
    createdAt: ctx.now(),
  });

export interface WorkflowTransition {
  to: ExecutionStatus;
  /** Replaces the stored texts; undefined: they stay. */
  texts?: ExecutionTexts;
  error?: { code: string; message: string };
  /** The sums over the steps. */
  usage?: NonNullable<WorkflowChange["usage"]>;
  durationMs?: number;
}

const END_STATUSES: ReadonlySet<ExecutionStatus> = new Set<ExecutionStatus>([
  "completed",
  "failed",
  "canceled",
]);

/** The columns that a change of the status sets. */
export const toWorkflowChange = (
  ctx: Context,
  execution: ExecutionRef,
  move: WorkflowTransition,
): WorkflowChange => ({
  status: move.to,
  ...(move.texts && { sealedTexts: sealTexts(ctx, execution, move.texts) }),
  ...(move.error && { errorCode: move.error.code, errorMessage: move.error.message }),
  ...(move.usage && { usage: move.usage, priceList: PRICE_LIST }),
  ...(move.durationMs !== undefined && { durationMs: move.durationMs }),
  ...(END_STATUSES.has(move.to) && { completedAt: ctx.now() }),
});
