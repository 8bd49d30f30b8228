import { api } from "@stoa/contract";
import { route } from "../http/route.ts";
import { executePrompt } from "./execute.ts";
import { listOwnExecutions, readExecution, removeExecution } from "./executions.ts";
import { changeKey, listOwnKeys, removeKey, storeKey, verifyKey } from "./provider-keys.ts";

export const aiRoutes = [
  route(api.ai.execute, (ctx, caller, { body }, facts) =>
    executePrompt(ctx, caller, body, facts.clientGone()),
  ),
  route(api.ai.executions, (ctx, caller, { query }) => listOwnExecutions(ctx, caller, query)),
  route(api.ai.execution, (ctx, caller, { params }) => readExecution(ctx, caller, params.executionId)),
  route(api.ai.removeExecution, (ctx, caller, { params }) =>
    removeExecution(ctx, caller, params.executionId),
  ),
  route(api.ai.keys, (ctx, caller, { query }) => listOwnKeys(ctx, caller, query)),
  route(api.ai.createKey, (ctx, caller, { body }) => storeKey(ctx, caller, body)),
  route(api.ai.changeKey, (ctx, caller, { params, body }) =>
    changeKey(ctx, caller, params.providerKeyId, body),
  ),
  route(api.ai.removeKey, (ctx, caller, { params }) => removeKey(ctx, caller, params.providerKeyId)),
  route(api.ai.verifyKey, (ctx, caller, { params }) => verifyKey(ctx, caller, params.providerKeyId)),
];
