import { api } from "@stoa/contract";
import { rotateCallbackSecret } from "../../events/webhooks/callbacks.ts";
import { DataResponse, resumableRoute, route, withoutCacheChange } from "../../platform/http/route.ts";
import { readCallbackSecret } from "./callbacks.ts";
import { executeWorkflow, resumeExecution } from "./execute-workflow.ts";
import { retryExecution } from "./retry-execution.ts";
import { decideStep, listOwnSteps, resumeDecision } from "./steps.ts";

export const workflowRunRoutes = [
  withoutCacheChange(
    resumableRoute(
      api.ai.executeWorkflow,
      (ctx, caller, { params, body }, { prefer }) =>
        executeWorkflow(ctx, caller, params.workflowId, body, prefer),
      resumeExecution,
    ),
  ),
  route(api.ai.steps, (ctx, caller, { params, query }) =>
    listOwnSteps(ctx, caller, params.executionId, query),
  ),
  resumableRoute(
    api.ai.retry,
    (ctx, caller, { params }, { prefer }) => retryExecution(ctx, caller, params.executionId, prefer),
    resumeExecution,
  ),
  resumableRoute(
    api.ai.approve,
    (ctx, caller, { params }) => decideStep(ctx, caller, params, "approved"),
    resumeDecision,
  ),
  resumableRoute(
    api.ai.reject,
    (ctx, caller, { params }) => decideStep(ctx, caller, params, "rejected"),
    resumeDecision,
  ),
  route(api.account.callbackSecret, (ctx, caller) => readCallbackSecret(ctx, caller)),
  route(
    api.account.rotateCallbackSecret,
    async (ctx, caller, _input, { source }) =>
      new DataResponse(await rotateCallbackSecret(ctx, caller.userId, source), { status: 201 }),
  ),
];
