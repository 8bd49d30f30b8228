import { api } from "@stoa/contract";
import { type Route, repeatableRoute, route } from "../../platform/http/route.ts";
import { cancelExecution } from "./cancel-execution.ts";
import { deleteExecution, listOwnExecutions, readExecution } from "./executions.ts";
import { listProductRunCounts, readProductRuns, readSaleRuns } from "./product-runs.ts";
import { readSharedRun, shareExecution, unshareExecution } from "./shares.ts";
import { streamExecutionEvents } from "./stream-events.ts";

export const executionRoutes: Route[] = [
  route(api.ai.executions.events, (ctx, caller, { params, query }, { lastEventId }) =>
    // A browser that reconnects repeats the old URL; its Last-Event-ID header is newer than the query.
    streamExecutionEvents(ctx, caller, params.executionId, lastEventId ?? (query.lastEventId || null)),
  ),
  repeatableRoute(
    "A canceled execution stays canceled.",
    route(api.ai.executions.cancel, (ctx, caller, { params }) =>
      cancelExecution(ctx, caller, params.executionId),
    ),
  ),
  repeatableRoute(
    "A shared execution keeps its link.",
    route(api.ai.executions.share, (ctx, caller, { params }) =>
      shareExecution(ctx, caller, params.executionId),
    ),
  ),
  route(api.ai.executions.unshare, (ctx, caller, { params }) =>
    unshareExecution(ctx, caller, params.executionId),
  ),
  route(api.sharedRuns.get, (ctx, _caller, { params }) => readSharedRun(ctx, params.token)),
  route(api.ai.executions.list, (ctx, caller, { query }) => listOwnExecutions(ctx, caller, query)),
  route(api.ai.executions.get, (ctx, caller, { params }) => readExecution(ctx, caller, params.executionId)),
  route(api.ai.executions.delete, (ctx, caller, { params }) =>
    deleteExecution(ctx, caller, params.executionId),
  ),
  route(api.products.runCounts, (ctx, caller, { query }) => listProductRunCounts(ctx, caller, query)),
  route(api.sales.runs, (ctx, caller, { params }) => readSaleRuns(ctx, caller, params.orderId)),
  route(api.ai.productRuns, (ctx, caller, { params }) => readProductRuns(ctx, caller, params.productId)),
];
