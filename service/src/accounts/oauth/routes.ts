import { api } from "@stoa/contract";
import { route } from "../../platform/http/route.ts";
import { createClient, listClients, removeClient, rotateSecret } from "./clients.ts";
import { listGrants, removeGrant } from "./grants.ts";

export const oauthRoutes = [
  route(api.oauth.clients, (ctx, caller, { query }) => listClients(ctx, caller, query)),
  route(api.oauth.createClient, (ctx, caller, { body }, { source }) =>
    createClient(ctx, caller, body, source),
  ),
  route(api.oauth.rotateClientSecret, (ctx, caller, { params }, { source }) =>
    rotateSecret(ctx, caller, params.clientId, source),
  ),
  route(api.oauth.removeClient, (ctx, caller, { params }, { source }) =>
    removeClient(ctx, caller, params.clientId, source),
  ),
  route(api.oauth.grants, (ctx, caller, { query }) => listGrants(ctx, caller, query)),
  route(api.oauth.removeGrant, (ctx, caller, { params }, { source }) =>
    removeGrant(ctx, caller, params.grantId, source),
  ),
];
