import type { ExecuteWorkflow, WorkflowExecution } from "@stoa/contract";
import { findProductToRun } from "../../catalog/products/detail.ts";
import type { Context, Member } from "../../core/context.ts";
import { fieldError, ruleViolation } from "../../core/errors.ts";
import { requireUuid } from "../../core/ids.ts";
import { findOrCreateCallback } from "../../events/webhooks/callbacks.ts";
import { normalizeEndpointUrl } from "../../events/webhooks/endpoint-url.ts";
import { checkInput } from "../../formats/workflow-definition/inputs.ts";
import { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import type { PreferHeader } from "../../platform/http/prefer.ts";
import { DataResponse } from "../../platform/http/route.ts";
import { findVersionToRun, mustBeEntitled } from "../prompt-runs/prepare-run.ts";
import { recordFirstUseOfPurchase } from "../prompt-runs/run-prompt.ts";
import { engine } from "./engine.ts";
import { findOversizedLists } from "./input-limits.ts";
import { readWorkflowExecution } from "./read-execution.ts";
import { checkRequirements } from "./requirements.ts";

const MAX_WAIT_SECONDS = 60;

/** Checks everything that a run needs and starts it. Responds at once, or at its end if the request prefers to wait. */
export async function executeWorkflow(
  ctx: Context,
  caller: Member,
  workflowId: string,
  request: ExecuteWorkflow,
  prefer: PreferHeader,
): Promise<DataResponse<WorkflowExecution>> {
  return toRunAnswer(ctx, caller, await startRun(ctx, caller, workflowId, request), prefer);
}

/** Responds to a repeated Idempotency-Key with the run that the first request started or retried. */
export const resumeExecution = (
  ctx: Context,
  caller: Member,
  executionId: string,
  _input: unknown,
  { prefer }: { prefer: PreferHeader },
): Promise<DataResponse<WorkflowExecution>> =>
  toRunAnswer(ctx, caller, requireUuid("exec", executionId), prefer);

/** 200 if the run ends while the request prefers to wait, else 202. */
export async function toRunAnswer(
  ctx: Context,
  caller: Member,
  id: string,
  prefer: PreferHeader,
): Promise<DataResponse<WorkflowExecution>> {
  const waitMs = Math.min(prefer.waitSeconds ?? 0, MAX_WAIT_SECONDS) * 1000;
  const end = waitMs > 0 ? await engine.waitForEnd(ctx, id, waitMs) : null;
  const execution = end?.execution ?? (await readWorkflowExecution(ctx, ctx.db, caller.userId, id));
  return new DataResponse(execution, { status: end?.hasEnded && execution.completedAt !== null ? 200 : 202 });
}

async function startRun(
  ctx: Context,
  caller: Member,
  workflowId: string,
  request: ExecuteWorkflow,
): Promise<string> {
  const product = await findProductToRun(ctx, caller, workflowId);
  mustBeEntitled(product);
  if (product.type !== "WORKFLOW") throw ruleViolation("workflowId", "is a prompt, not a workflow");
  if (request.webhookUrl !== undefined) normalizeEndpointUrl(ctx, request.webhookUrl, "webhookUrl");
  const version = await findVersionToRun(ctx, product, request.options.version);
  const workflow = Workflow.parse(JSON.parse(version.content));
  const checked = checkInput(workflow.input, request.input);
  const requirements = await checkRequirements(ctx, caller, workflow, request.apiKeys);
  const problems = [
    ...("problems" in checked ? checked.problems : findOversizedLists(workflow, checked.input)),
    ...requirements.problems,
  ];
  if ("problems" in checked || problems.length > 0) throw fieldError("VALIDATION_ERROR", problems);
  await recordFirstUseOfPurchase(ctx, caller, { product });
  return engine.start(ctx, caller.userId, {
    productId: product.id,
    version: version.version,
    definition: version.content,
    input: checked.input,
    apiKeys: request.apiKeys,
    maxCost: request.options.maxCost ?? null,
    callbackId:
      request.webhookUrl === undefined
        ? null
        : await findOrCreateCallback(ctx, caller.userId, request.webhookUrl),
    depth: 1,
    parent: null,
    keys: requirements.keys,
  });
}
