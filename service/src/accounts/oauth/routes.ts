import { api } from "@stoa/contract";
import { route } from "../../platform/http/route.ts";
import { createClient, deleteClient, listClients, rotateClientSecret } from "./clients.ts";
import { listGrants, revokeGrant } from "./grants.ts";

export const oauthRoutes = [
  route(api.oauth.clients.list, (ctx, caller, { query }) => listClients(ctx, caller, query)),
  route(api.oauth.clients.create, (ctx, caller, { body }, { source }) =>
    createClient(ctx, caller, body, source),
  ),
  route(api.oauth.clients.rotateSecret, (ctx, caller, { params }, { source }) =>
    rotateClientSecret(ctx, caller, params.clientId, source),
  ),
  route(api.oauth.clients.delete, (ctx, caller, { params }, { source }) =>
    deleteClient(ctx, caller, params.clientId, source),
  ),
  route(api.oauth.grants.list, (ctx, caller, { query }) => listGrants(ctx, caller, query)),
  route(api.oauth.grants.revoke, (ctx, caller, { params }, { source }) =>
    revokeGrant(ctx, caller, params.grantId, source),
  ),
];
