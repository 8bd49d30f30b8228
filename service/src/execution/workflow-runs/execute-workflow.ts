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
import type { WorkflowTarget } from "./workflow-targets.ts";

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

/** Starts with the remembered target, if the database has the same, else with what it reads. */
async function startRun(
  ctx: Context,
  caller: Member,
  workflowId: string,
  request: ExecuteWorkflow,
): Promise<string> {
  const named = { workflowId, apiKeys: request.apiKeys };
  const target = ctx.workflowTargets.find(caller, named);
  const started = target && (await startRemembered(ctx, caller, target, request));
  if (started) return started;
  ctx.workflowTargets.forget(caller, named);
  return readAndStart(ctx, caller, workflowId, request);
}

/** null: the target must be read. A problem may come from its stale state, so the request is checked again. */
async function startRemembered(
  ctx: Context,
  caller: Member,
  target: WorkflowTarget,
  { input, apiKeys, options, webhookUrl }: ExecuteWorkflow,
): Promise<string | null> {
  const { product, workflow } = target;
  const isSameVersion = options.version === undefined || options.version === product.version;
  if (!isSameVersion || webhookUrl !== undefined) return null;
  const checked = checkInput(workflow.input, input);
  if ("problems" in checked || findOversizedLists(workflow, checked.input).length > 0) return null;
  const run = {
    ...{ productId: product.id, version: product.version, definition: product.content },
    ...{ input: checked.input, apiKeys, maxCost: options.maxCost ?? null, callbackId: null },
  };
  return engine.startRemembered(ctx, caller.userId, run, target);
}

async function readAndStart(
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
  const id = await engine.start(ctx, caller.userId, {
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
  if (version === product)
    ctx.workflowTargets.remember(
      caller,
      { workflowId, apiKeys: request.apiKeys },
      { product, workflow, keys: requirements.keys },
    );
  return id;
}
