import { api } from "@stoa/contract";
import { route } from "../http/route.ts";
import { listAudit } from "./entries.ts";

export const auditRoutes = [route(api.admin.audit.list, (ctx, _caller, { query }) => listAudit(ctx, query))];
