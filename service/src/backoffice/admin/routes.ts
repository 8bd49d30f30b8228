import { api } from "@stoa/contract";
import { resumableRoute, route } from "../../platform/http/route.ts";
import { endAccountView, startAccountView } from "./account-views.ts";
import { banUser, endSessionsOfUser, unbanUser } from "./bans.ts";
import { changeUser } from "./change-user.ts";
import { becomeFirstAdmin } from "./first-admin.ts";
import { listOAuthClients } from "./oauth-clients.ts";
import { readStats } from "./stats.ts";
import { listUsers, readUser } from "./users.ts";

export const adminRoutes = [
  route(api.admin.users.list, (ctx, _caller, { query }) => listUsers(ctx, query)),
  route(api.admin.users.get, (ctx, _caller, { params }) => readUser(ctx, params.userId)),
  route(api.admin.users.update, (ctx, caller, { params, body }, { ifMatch, source }) =>
    changeUser(ctx, { caller, source }, params.userId, body, ifMatch),
  ),
  resumableRoute(
    api.admin.users.ban,
    (ctx, caller, { params, body }, { source }) =>
      banUser(ctx, { caller, source }, params.userId, body.reason),
    (ctx, _caller, userId) => readUser(ctx, userId),
  ),
  resumableRoute(
    api.admin.users.unban,
    (ctx, caller, { params }, { source }) => unbanUser(ctx, { caller, source }, params.userId),
    (ctx, _caller, userId) => readUser(ctx, userId),
  ),
  resumableRoute(
    api.admin.users.endSessions,
    (ctx, caller, { params }, { source }) => endSessionsOfUser(ctx, { caller, source }, params.userId),
    async (_ctx, _caller, ended) => JSON.parse(ended),
  ),
  route(api.admin.oauthClients.list, (ctx, _caller, { query }) => listOAuthClients(ctx, query)),
  route(api.admin.stats.get, (ctx, _caller, { query }) => readStats(ctx, query)),
  route(api.admin.view.start, (ctx, caller, { body }, { source }) =>
    startAccountView(ctx, { caller, source }, body),
  ),
  route(api.admin.view.end, (ctx, caller, _input, { source }) => endAccountView(ctx, { caller, source })),
  route(api.signIn.becomeFirstAdmin, (ctx, _caller, { body }, facts) =>
    becomeFirstAdmin(ctx, body.token, facts),
  ),
];
