import type { Context } from "../../core/context.ts";
import type { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import type { Queries } from "../../platform/db/database.ts";
import { listAllSteps, type StepRow } from "./run-queries.ts";
import { keyOf, RunState, type StepRun } from "./run-state.ts";
import { type Owned, openOutput, sealOutput } from "./sealed-texts.ts";

/** How far a run had come when it was last written down. */
export async function readState(
  ctx: Context,
  db: Queries,
  run: Owned,
  workflow: Workflow,
): Promise<RunState> {
  const rows = await listAllSteps(db, run.id);
  const runs = rows.map(
    ({ sealedOutput, errorCode, errorMessage, ...row }): StepRun => ({
      ...row,
      output: sealedOutput === null ? null : openOutput(ctx, run, keyOf(row.stepId, row.item), sealedOutput),
      error: errorCode === null ? null : { code: errorCode, message: errorMessage ?? "" },
      spent:
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

/** A step as it is written down: its output sealed, for it alone. */
export function toStepRow(ctx: Context, run: Owned, state: RunState, step: StepRun): StepRow {
  const { output, error, spent, decision: _, decidedAt: __, ...row } = step;
  return {
    ...row,
    type: state.work(step).type,
    sealedOutput:
      output === null ? null : sealOutput(ctx, run, keyOf(step.stepId, step.item), JSON.stringify(output)),
    errorCode: error?.code ?? null,
    errorMessage: error?.message ?? null,
    promptTokens: spent?.promptTokens ?? null,
    completionTokens: spent?.completionTokens ?? null,
    costUsd: spent?.costUsd ?? null,
    costKnown: spent?.costKnown ?? null,
    estimated: spent?.estimated ?? false,
  };
}
