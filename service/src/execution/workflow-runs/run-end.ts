import { required } from "../../core/required.ts";
import { evaluateAll } from "./expressions.ts";
import { findFailure, isCompleted } from "./next-steps.ts";
import type { RunContext } from "./prepare-step.ts";
import type { RunState, StepError } from "./run-state.ts";

export type RunEnd =
  | { status: "completed"; output: unknown }
  | { status: "failed"; error: StepError }
  | { status: "canceled"; error: StepError | null };

/** null: the run continues. */
export async function findRunEnd(run: RunContext, state: RunState): Promise<RunEnd | null> {
  const refusal = run.costLimit?.refusal;
  if (refusal) return { status: "failed", error: { code: refusal.code, message: refusal.message } };
  const failure = findFailure(state);
  if (failure) {
    const { code, message } = required(failure.error, "the error of a failed step");
    return { status: "failed", error: { code, message: `Step ${failure.stepId}: ${message}` } };
  }
  return isCompleted(state) ? completed(run, state) : null;
}

async function completed(run: RunContext, state: RunState): Promise<RunEnd> {
  const bindings = { input: run.start.input, steps: state.outputs() };
  const valued = await evaluateAll(run, { result: state.workflow.result }, bindings);
  if ("fault" in valued)
    return { status: "failed", error: { code: "EXPRESSION_FAILED", message: valued.fault } };
  return { status: "completed", output: valued.values["result"] ?? null };
}
