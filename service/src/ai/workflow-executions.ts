import type { Context } from "../context.ts";
import type { Queries } from "../db/database.ts";
import { PRICE_LIST } from "./cost.ts";
import {
  type ExecutionMode,
  type ExecutionStatus,
  insertWorkflow,
  moveWorkflow,
  requestCancelOfAll,
} from "./queries.ts";
import { type Sealed, sealTexts, type Texts } from "./texts.ts";

export interface NewWorkflowExecution extends Sealed {
  productId: string;
  productVersion: string;
  mode: ExecutionMode;
  /** null: nothing is to be stored. */
  texts: Texts | null;
}

/** A workflow's row in the history, `queued`; written in the transaction of the engine that will run it. */
export const addWorkflowExecution = (
  ctx: Context,
  db: Queries,
  { texts, ...execution }: NewWorkflowExecution,
) =>
  insertWorkflow(db, {
    ...execution,
    sealedTexts: texts && sealTexts(ctx, execution, texts),
    createdAt: ctx.now(),
  });

export interface WorkflowMove {
  from: readonly ExecutionStatus[];
  to: ExecutionStatus;
  /** In the place of what was kept so far; left out, that stays. */
  texts?: Texts;
  error?: { code: string; message: string };
  /** The sums of its steps. */
  spent?: {
    promptTokens: number;
    completionTokens: number;
    costUsd: number;
    costKnown: boolean;
    estimated: boolean;
  };
  durationMs?: number;
}

/** Of those that have not ended. */
export const askToCancel = async (db: Queries, ids: string[], now: Date): Promise<void> => {
  if (ids.length > 0) await requestCancelOfAll(db, ids, now);
};

/** One that has ended runs on: `queued` again, without its end. */
export const reopenWorkflowExecution = (db: Queries, id: string) =>
  moveWorkflow(db, id, ["failed", "canceled"], {
    status: "queued",
    error_code: null,
    error_message: null,
    cancel_requested_at: null,
    completed_at: null,
    duration_ms: null,
  });

const ended: ReadonlySet<ExecutionStatus> = new Set<ExecutionStatus>(["completed", "failed", "canceled"]);

/** Moves a workflow's row; false when it stands in no state of `from`. Texts of a row that was deleted do not come back. */
export const moveWorkflowExecution = (
  ctx: Context,
  db: Queries,
  execution: Sealed,
  move: WorkflowMove,
): Promise<boolean> =>
  moveWorkflow(db, execution.id, move.from, {
    status: move.to,
    ...(move.texts && { sealedTexts: sealTexts(ctx, execution, move.texts) }),
    ...(move.error && { error_code: move.error.code, error_message: move.error.message }),
    ...(move.spent && {
      prompt_tokens: move.spent.promptTokens,
      completion_tokens: move.spent.completionTokens,
      cost_usd: move.spent.costUsd,
      cost_known: move.spent.costKnown,
      price_list: PRICE_LIST,
      usage_estimated: move.spent.estimated,
    }),
    ...(move.durationMs !== undefined && { duration_ms: move.durationMs }),
    ...(ended.has(move.to) && { completed_at: ctx.now() }),
  });
