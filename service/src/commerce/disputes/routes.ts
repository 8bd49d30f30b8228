import { api } from "@stoa/contract";
import { route } from "../../platform/http/route.ts";
import { listDisputes } from "./dispute-list.ts";

export const disputeRoutes = [
  route(api.admin.disputes.list, (ctx, _caller, { query }) => listDisputes(ctx, query)),
];
