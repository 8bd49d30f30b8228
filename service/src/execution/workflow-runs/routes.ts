import { api } from "@stoa/contract";
import { rotateCallbackSecret } from "../../events/webhooks/callbacks.ts";
import { Answer, leavingMemory, resumedBy, route } from "../../platform/http/route.ts";
import { readCallbackSecret } from "./callbacks.ts";
import { executeWorkflow, resumeExecution } from "./execute-workflow.ts";
import { retryExecution } from "./retry-execution.ts";
import { decideStep, listOwnSteps, resumeDecision } from "./steps.ts";

export const workflowRunRoutes = [
  leavingMemory(
    resumedBy(
      api.ai.executeWorkflow,
      (ctx, caller, { params, body }, { prefer }) =>
        executeWorkflow(ctx, caller, params.workflowId, body, prefer),
      resumeExecution,
    ),
  ),
  route(api.ai.steps, (ctx, caller, { params, query }) =>
    listOwnSteps(ctx, caller, params.executionId, query),
  ),
  resumedBy(
    api.ai.retry,
    (ctx, caller, { params }, { prefer }) => retryExecution(ctx, caller, params.executionId, prefer),
    resumeExecution,
  ),
  resumedBy(
    api.ai.approve,
    (ctx, caller, { params }) => decideStep(ctx, caller, params, "approved"),
    resumeDecision,
  ),
  resumedBy(
    api.ai.reject,
    (ctx, caller, { params }) => decideStep(ctx, caller, params, "rejected"),
    resumeDecision,
  ),
  route(api.account.callbackSecret, (ctx, caller) => readCallbackSecret(ctx, caller)),
  route(
    api.account.drawCallbackSecret,
    async (ctx, caller, _input, { source }) =>
      new Answer(await rotateCallbackSecret(ctx, caller.userId, source), { status: 201 }),
  ),
];
