import { api } from "@stoa/contract";
import { type Route, repeatableRoute, resumableRoute, route } from "../../platform/http/route.ts";
import { listModels } from "./models.ts";
import { changeKey, deleteKey, listOwnKeys, resumeKey, storeKey, verifyKey } from "./provider-keys.ts";

export const providerKeyRoutes: Route[] = [
  route(api.ai.models.list, (ctx, caller, { query }) => listModels(ctx, caller, query)),
  route(api.ai.keys.list, (ctx, caller, { query }) => listOwnKeys(ctx, caller, query)),
  resumableRoute(
    api.ai.keys.create,
    (ctx, caller, { body }, { source }) => storeKey(ctx, caller, body, source),
    resumeKey,
  ),
  route(api.ai.keys.update, (ctx, caller, { params, body }, { source }) =>
    changeKey(ctx, caller, params.providerKeyId, body, source),
  ),
  route(api.ai.keys.delete, (ctx, caller, { params }, { source }) =>
    deleteKey(ctx, caller, params.providerKeyId, source),
  ),
  repeatableRoute(
    "It asks the provider whether a key is good, and runs nothing.",
    route(api.ai.keys.verify, (ctx, caller, { params }) => verifyKey(ctx, caller, params.providerKeyId)),
  ),
];
