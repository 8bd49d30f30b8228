import type { Context } from "../../core/context.ts";
import type { ExecutionRef } from "../executions/texts.ts";
import { listAllSteps } from "./run-queries.ts";
import { NO_ITEM, type StepError, stepKey } from "./run-state.ts";
import { openOutput } from "./sealed-texts.ts";
import { durationOf } from "./workflow-kind.ts";

/** A completed or failed item of a map. */
export interface EndedItem {
  stepId: string;
  item: number;
  output: unknown;
  /** null: it completed. */
  error: StepError | null;
  costUsd: number | null;
  /** Of the last attempt. */
  latencyMs: number | null;
}

/** The items of a run's maps that completed or failed. */
export async function listEndedItems(ctx: Context, run: ExecutionRef): Promise<EndedItem[]> {
  const steps = await listAllSteps(ctx.db, run.id);
  return steps
    .filter(({ item, status }) => item !== NO_ITEM && (status === "completed" || status === "failed"))
    .map((step) => ({
      ...{ stepId: step.stepId, item: step.item },
      output:
        step.sealedOutput === null
          ? null
          : openOutput(ctx, run, stepKey(step.stepId, step.item), step.sealedOutput),
      error:
        step.status === "failed"
          ? { code: step.errorCode ?? "INTERNAL_ERROR", message: step.errorMessage ?? "" }
          : null,
      costUsd: step.costUsd === null ? null : Number(step.costUsd),
      latencyMs: durationOf(step),
    }));
}
