import { api } from "@stoa/contract";
import { route } from "../../platform/http/route.ts";
import { createClient, deleteClient, listClients, rotateClientSecret } from "./clients.ts";
import { listGrants, revokeGrant } from "./grants.ts";

export const oauthRoutes = [
  route(api.oauth.clients, (ctx, caller, { query }) => listClients(ctx, caller, query)),
  route(api.oauth.createClient, (ctx, caller, { body }, { source }) =>
    createClient(ctx, caller, body, source),
  ),
  route(api.oauth.rotateClientSecret, (ctx, caller, { params }, { source }) =>
    rotateClientSecret(ctx, caller, params.clientId, source),
  ),
  route(api.oauth.deleteClient, (ctx, caller, { params }, { source }) =>
    deleteClient(ctx, caller, params.clientId, source),
  ),
  route(api.oauth.grants, (ctx, caller, { query }) => listGrants(ctx, caller, query)),
  route(api.oauth.revokeGrant, (ctx, caller, { params }, { source }) =>
    revokeGrant(ctx, caller, params.grantId, source),
  ),
];
