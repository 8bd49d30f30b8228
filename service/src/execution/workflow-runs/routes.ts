import { api } from "@stoa/contract";
import { rotateCallbackSecret } from "../../events/webhooks/callbacks.ts";
import {
  DataResponse,
  repeatableRoute,
  resumableRoute,
  route,
  withoutCacheChange,
} from "../../platform/http/route.ts";
import { readCallbackSecret } from "./callbacks.ts";
import { checkDefinition } from "./check-definition.ts";
import { executeWorkflow, resumeExecution } from "./execute-workflow.ts";
import { retryExecution } from "./retry-execution.ts";
import { decideStep, listOwnSteps, resumeDecision } from "./steps.ts";
import { testWorkflow } from "./test-workflow.ts";

export const workflowRunRoutes = [
  withoutCacheChange(
    resumableRoute(
      api.ai.workflows.execute,
      (ctx, caller, { params, body }, { prefer }) =>
        executeWorkflow(ctx, caller, params.workflowId, body, prefer),
      resumeExecution,
    ),
  ),
  withoutCacheChange(
    repeatableRoute(
      "It writes nothing.",
      route(api.ai.workflows.check, (ctx, caller, { body }) => checkDefinition(ctx, caller, body)),
    ),
  ),
  withoutCacheChange(
    resumableRoute(
      api.ai.workflows.test,
      (ctx, caller, { params, body }, { prefer }) =>
        testWorkflow(ctx, caller, params.workflowId, body, prefer),
      resumeExecution,
    ),
  ),
  route(api.ai.executions.steps, (ctx, caller, { params, query }) =>
    listOwnSteps(ctx, caller, params.executionId, query),
  ),
  resumableRoute(
    api.ai.executions.retry,
    (ctx, caller, { params }, { prefer }) => retryExecution(ctx, caller, params.executionId, prefer),
    resumeExecution,
  ),
  resumableRoute(
    api.ai.executions.approve,
    (ctx, caller, { params }) => decideStep(ctx, caller, params, "approved"),
    resumeDecision,
  ),
  resumableRoute(
    api.ai.executions.reject,
    (ctx, caller, { params }) => decideStep(ctx, caller, params, "rejected"),
    resumeDecision,
  ),
  route(api.account.callbackSecret.get, (ctx, caller) => readCallbackSecret(ctx, caller)),
  route(
    api.account.callbackSecret.rotate,
    async (ctx, caller, _input, { source }) =>
      new DataResponse(await rotateCallbackSecret(ctx, caller.userId, source), { status: 201 }),
  ),
];
