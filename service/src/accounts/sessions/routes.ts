import { api } from "@stoa/contract";
import { route } from "../../platform/http/route.ts";
import { endOtherSessions, endOwnSession, listOwnSessions } from "./own-sessions.ts";

export const sessionRoutes = [
  route(api.account.sessions.list, (ctx, caller, { query }) => listOwnSessions(ctx, caller, query)),
  route(api.account.sessions.deleteOthers, (ctx, caller, _input, { source }) =>
    endOtherSessions(ctx, caller, source),
  ),
  route(api.account.sessions.delete, (ctx, caller, { params }, { source }) =>
    endOwnSession(ctx, caller, params.sessionId, source),
  ),
];
