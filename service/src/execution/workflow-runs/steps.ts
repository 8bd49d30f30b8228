import type { WorkflowStep } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import { mapPage, type Page, type Paging } from "../../platform/db/paging.ts";
import type { Decision } from "./approvals.ts";
import { engine } from "./engine.ts";
import { findOwnExecution, findSealedStart, findStep, listSteps, type StepListRow } from "./queries.ts";
import { NO_ITEM, stepKey } from "./run-state.ts";
import { openOutput, openRunInput, type RunRef } from "./sealed-texts.ts";
import { toUsage } from "./usage.ts";

/** The execution behind an id, of any type, if it is the caller's. */
export async function mustFindOwnExecution(ctx: Context, caller: Member, executionId: string) {
  const id = toUuid("exec", executionId);
  const execution = id ? await findOwnExecution(ctx.db, caller.userId, id) : undefined;
  if (!execution) throw new ApiError("EXECUTION_NOT_FOUND");
  return execution;
}

export async function listOwnSteps(
  ctx: Context,
  caller: Member,
  executionId: string,
  paging: Paging,
): Promise<Page<WorkflowStep>> {
  const { id } = await mustFindOwnExecution(ctx, caller, executionId);
  const run = { id, userId: caller.userId };
  const page = await listSteps(ctx.db, id, paging);
  const prompts = await readApprovalPrompts(ctx, run, page.items);
  return mapPage(page, (step) => toStep(ctx, run, step, prompts));
}

/** Says yes or no to an approval, and answers the step that it was said of. */
export async function decideStep(
  ctx: Context,
  caller: Member,
  { executionId, stepId }: { executionId: string; stepId: string },
  decision: Decision,
): Promise<WorkflowStep> {
  const { id } = await mustFindOwnExecution(ctx, caller, executionId);
  await engine.decide(ctx, { id, userId: caller.userId }, stepId, decision);
  return readStep(ctx, caller, id, stepId);
}

/** Of a step that was decided under the same Idempotency-Key. */
export const resumeDecision = async (
  ctx: Context,
  caller: Member,
  executionId: string,
  { params }: { params: { stepId: string } },
): Promise<WorkflowStep> => {
  const { id } = await mustFindOwnExecution(ctx, caller, executionId);
  return readStep(ctx, caller, id, params.stepId);
};

async function readStep(ctx: Context, caller: Member, id: string, stepId: string): Promise<WorkflowStep> {
  const run = { id, userId: caller.userId };
  const step = required(await findStep(ctx.db, id, stepId), "the step");
  return toStep(ctx, run, step, await readApprovalPrompts(ctx, run, [step]));
}

/** What approvals ask, by step: it stands in the definition that the run was begun with, sealed. */
async function readApprovalPrompts(
  ctx: Context,
  run: RunRef,
  rows: StepListRow[],
): Promise<Map<string, string>> {
  const sealed = rows.some(({ type }) => type === "approval") && (await findSealedStart(ctx.db, run.id));
  if (!sealed) return new Map();
  const { steps } = Workflow.parse(JSON.parse(openRunInput(ctx, run, sealed).definition));
  return new Map(
    steps.flatMap((step) => (step.type === "approval" && step.prompt ? [[step.id, step.prompt]] : [])),
  );
}

function toStep(ctx: Context, run: RunRef, row: StepListRow, prompts: Map<string, string>): WorkflowStep {
  const { stepId, item, sealedOutput } = row;
  return {
    stepId,
    index: item === NO_ITEM ? null : item,
    type: row.type,
    status: row.status,
    attempt: row.attempt,
    possiblyRepeated: row.repeats > 0,
    executionId: row.called === null ? null : toId("exec", row.called),
    output: sealedOutput === null ? null : openOutput(ctx, run, stepKey(stepId, item), sealedOutput),
    error: row.errorCode === null ? null : { code: row.errorCode, message: row.errorMessage ?? "" },
    provider: row.provider,
    model: row.model,
    usage: toUsage(row),
    dueAt: row.dueAt?.toISOString() ?? null,
    prompt: prompts.get(stepId) ?? null,
    decision: row.decision,
    decidedAt: row.decidedAt?.toISOString() ?? null,
    startedAt: row.startedAt?.toISOString() ?? null,
    endedAt: row.endedAt?.toISOString() ?? null,
  };
}
