import { api } from "@stoa/contract";
import { type Route, route } from "../../platform/http/route.ts";
import { createRunReceipt } from "./run-receipt.ts";

export const runReceiptRoutes: Route[] = [
  route(api.ai.executionReceipt, (ctx, caller, { params }) =>
    createRunReceipt(ctx, caller, params.executionId),
  ),
];
