import { api } from "@stoa/contract";
import { route } from "../../platform/http/route.ts";
import { listOwnRequests } from "./request-log.ts";

export const requestLogRoutes = [
  route(api.requestLogs.list, (ctx, caller, { query }) => listOwnRequests(ctx, caller, query)),
];
