import { api } from "@stoa/contract";
import { harmlessAgain, leavingMemory, type Route, resumedBy, route, streamRoute } from "../http/route.ts";
import { cancelExecution } from "./cancel.ts";
import { estimate } from "./estimate.ts";
import { promptKind, runsAsStream, streamExecution } from "./events.ts";
import { executePrompt, modeOf, resumePrompt } from "./execute.ts";
import { listOwnExecutions, readExecution, removeExecution } from "./executions.ts";
import type { ExecutionKinds } from "./kinds.ts";
import { readProductRuns } from "./product-runs.ts";
import { changeKey, listOwnKeys, removeKey, resumeKey, storeKey, verifyKey } from "./provider-keys.ts";
import { receiptOf } from "./receipt.ts";

/** `others` can be executed by rooms that this one knows nothing of. */
export const aiRoutes = (others: ExecutionKinds = {}): Route[] => {
  const kinds = { PROMPT: promptKind, ...others };
  return [
    leavingMemory(
      streamRoute(api.ai.execute, (ctx, caller, { body }, facts) => executePrompt(ctx, caller, body, facts), {
        again: (ctx, caller, executionId) => streamExecution(ctx, caller, executionId, null, kinds),
        join: async (ctx, caller, executionId) =>
          (await runsAsStream(ctx, caller, executionId)) ? executionId : null,
        resume: (ctx, caller, executionId, { body }, facts) =>
          resumePrompt(ctx, caller, executionId, modeOf(body, facts)),
      }),
    ),
    leavingMemory(
      harmlessAgain(
        "It writes nothing.",
        route(api.ai.estimate, (ctx, caller, { body }) => estimate(ctx, caller, body)),
      ),
    ),
    route(api.ai.executionEvents, (ctx, caller, { params, query }, { lastEventId }) =>
      // A browser that comes back by itself asks the same address again, and knows better what it heard.
      streamExecution(ctx, caller, params.executionId, lastEventId ?? (query.lastEventId || null), kinds),
    ),
    harmlessAgain(
      "A canceled execution stays canceled.",
      route(api.ai.cancelExecution, (ctx, caller, { params }) =>
        cancelExecution(ctx, caller, params.executionId, kinds),
      ),
    ),
    route(api.ai.executions, (ctx, caller, { query }) => listOwnExecutions(ctx, caller, query)),
    route(api.ai.execution, (ctx, caller, { params }) => readExecution(ctx, caller, params.executionId)),
    route(api.ai.executionReceipt, (ctx, caller, { params }) =>
      receiptOf(ctx, caller, params.executionId, kinds),
    ),
    route(api.ai.removeExecution, (ctx, caller, { params }) =>
      removeExecution(ctx, caller, params.executionId),
    ),
    route(api.ai.productRuns, (ctx, caller, { params }) => readProductRuns(ctx, caller, params.productId)),
    route(api.ai.keys, (ctx, caller, { query }) => listOwnKeys(ctx, caller, query)),
    resumedBy(
      api.ai.createKey,
      (ctx, caller, { body }, { source }) => storeKey(ctx, caller, body, source),
      resumeKey,
    ),
    route(api.ai.changeKey, (ctx, caller, { params, body }, { source }) =>
      changeKey(ctx, caller, params.providerKeyId, body, source),
    ),
    route(api.ai.removeKey, (ctx, caller, { params }, { source }) =>
      removeKey(ctx, caller, params.providerKeyId, source),
    ),
    harmlessAgain(
      "It asks the provider whether a key is good, and runs nothing.",
      route(api.ai.verifyKey, (ctx, caller, { params }) => verifyKey(ctx, caller, params.providerKeyId)),
    ),
  ];
};
