import type { Context } from "../../core/context.ts";
import type { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import type { Queries } from "../../platform/db/database.ts";
import type { ExecutionRef } from "../executions/texts.ts";
import { listAllSteps, type StepRow } from "./run-queries.ts";
import { RunState, type StepRun, stepKey } from "./run-state.ts";
import { openOutput, sealOutput } from "./sealed-texts.ts";

/** The state that the last checkpoint wrote. */
export async function readRunState(
  ctx: Context,
  db: Queries,
  run: ExecutionRef,
  workflow: Workflow,
): Promise<RunState> {
  const rows = await listAllSteps(db, run.id);
  const runs = rows.map(
    ({ sealedOutput, errorCode, errorMessage, ...row }): StepRun => ({
      ...row,
      output:
        sealedOutput === null ? null : openOutput(ctx, run, stepKey(row.stepId, row.item), sealedOutput),
      error: errorCode === null ? null : { code: errorCode, message: errorMessage ?? "" },
      usage:
        row.promptTokens === null
          ? null
          : {
              promptTokens: row.promptTokens,
              completionTokens: row.completionTokens ?? 0,
              costUsd: Number(row.costUsd ?? 0),
              costKnown: row.costKnown ?? false,
              estimated: row.estimated,
            },
    }),
  );
  return new RunState(workflow, runs);
}

/** Seals the output so that it opens only as that of this step. */
export function toStepRow(ctx: Context, run: ExecutionRef, state: RunState, step: StepRun): StepRow {
  const { output, error, usage, decision: _, decidedAt: __, ...row } = step;
  return {
    ...row,
    type: state.work(step).type,
    sealedOutput:
      output === null ? null : sealOutput(ctx, run, stepKey(step.stepId, step.item), JSON.stringify(output)),
    errorCode: error?.code ?? null,
    errorMessage: error?.message ?? null,
    promptTokens: usage?.promptTokens ?? null,
    completionTokens: usage?.completionTokens ?? null,
    costUsd: usage?.costUsd ?? null,
    costKnown: usage?.costKnown ?? null,
    estimated: usage?.estimated ?? false,
  };
}
