import { api } from "@stoa/contract";
import { route } from "../../platform/http/route.ts";
import { createOwnKey, listOwnKeys, renameOwnKey, revokeOwnKey } from "./own-keys.ts";
import { rotateKey } from "./rotation.ts";

export const keyRoutes = [
  route(api.apiKeys.list, (ctx, caller, { query }) => listOwnKeys(ctx, caller, query)),
  route(api.apiKeys.create, (ctx, caller, { body }, { source }) => createOwnKey(ctx, caller, body, source)),
  route(api.apiKeys.update, (ctx, caller, { params, body }, { source }) =>
    renameOwnKey(ctx, caller, { ...params, ...body }, source),
  ),
  route(api.apiKeys.rotate, (ctx, caller, { params, body }, { source }) =>
    rotateKey(ctx, caller, { ...params, ...body }, source),
  ),
  route(api.apiKeys.revoke, (ctx, caller, { params }, { source }) =>
    revokeOwnKey(ctx, caller, params.keyId, source),
  ),
];
