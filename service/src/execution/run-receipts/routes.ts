import { api } from "@stoa/contract";
import { type Route, route } from "../../platform/http/route.ts";
import type { ExecutionKinds } from "../executions/kinds.ts";
import { createRunReceipt } from "./run-receipt.ts";

export const runReceiptRoutes = (kinds: ExecutionKinds): Route[] => [
  route(api.ai.executionReceipt, (ctx, caller, { params }) =>
    createRunReceipt(ctx, caller, params.executionId, kinds),
  ),
];
