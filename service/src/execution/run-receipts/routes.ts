import { api } from "@stoa/contract";
import { type Route, route } from "../../platform/http/route.ts";
import { createRunReceipt } from "./run-receipt.ts";

export const runReceiptRoutes: Route[] = [
  route(api.ai.executions.receipt, (ctx, caller, { params }) =>
    createRunReceipt(ctx, caller, params.executionId),
  ),
];
