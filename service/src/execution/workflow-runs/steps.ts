import type { WorkflowStep } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import { mapPage, type Page, type Paging } from "../../platform/db/paging.ts";
import { mustFindExecution } from "../executions/executions.ts";
import type { ExecutionRef } from "../executions/texts.ts";
import { toUsage } from "../executions/usage.ts";
import type { Decision } from "./approvals.ts";
import { engine } from "./engine.ts";
import { findSealedStart, findStep, listSteps, type StepListRow } from "./queries.ts";
import { NO_ITEM, stepKey } from "./run-state.ts";
import { openOutput, openRunInput } from "./sealed-texts.ts";

export async function listOwnSteps(
  ctx: Context,
  caller: Member,
  executionId: string,
  paging: Paging,
): Promise<Page<WorkflowStep>> {
  const { id } = await mustFindExecution(ctx, caller, executionId);
  const run = { id, userId: caller.userId };
  const page = await listSteps(ctx.db, id, paging);
  const prompts = await readApprovalPrompts(ctx, run, page.items);
  return mapPage(page, (step) => toStep(ctx, run, step, prompts));
}

/** Approves or rejects a waiting step, and returns the step. */
export async function decideStep(
  ctx: Context,
  caller: Member,
  { executionId, stepId }: { executionId: string; stepId: string },
  decision: Decision,
): Promise<WorkflowStep> {
  const { id } = await mustFindExecution(ctx, caller, executionId);
  await engine.decide(ctx, { id, userId: caller.userId }, stepId, decision);
  return readStep(ctx, caller, id, stepId);
}

/** The step that an earlier request with this Idempotency-Key decided. */
export const resumeDecision = async (
  ctx: Context,
  caller: Member,
  executionId: string,
  { params }: { params: { stepId: string } },
): Promise<WorkflowStep> => {
  const { id } = await mustFindExecution(ctx, caller, executionId);
  return readStep(ctx, caller, id, params.stepId);
};

async function readStep(ctx: Context, caller: Member, id: string, stepId: string): Promise<WorkflowStep> {
  const run = { id, userId: caller.userId };
  const step = required(await findStep(ctx.db, id, stepId), "the step");
  return toStep(ctx, run, step, await readApprovalPrompts(ctx, run, [step]));
}

/** The prompts of approvals by step id, from the sealed definition with which the run started. */
async function readApprovalPrompts(
  ctx: Context,
  run: ExecutionRef,
  rows: StepListRow[],
): Promise<Map<string, string>> {
  const sealed = rows.some(({ type }) => type === "approval") && (await findSealedStart(ctx.db, run.id));
  if (!sealed) return new Map();
  const { steps } = Workflow.parse(JSON.parse(openRunInput(ctx, run, sealed).definition));
  return new Map(
    steps.flatMap((step) => (step.type === "approval" && step.prompt ? [[step.id, step.prompt]] : [])),
  );
}

function toStep(
  ctx: Context,
  run: ExecutionRef,
  row: StepListRow,
  prompts: Map<string, string>,
): WorkflowStep {
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
