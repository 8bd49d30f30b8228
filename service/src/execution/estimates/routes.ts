import { api } from "@stoa/contract";
import { type Route, repeatableRoute, route, withoutCacheChange } from "../../platform/http/route.ts";
import { estimateRun } from "./estimate.ts";

export const estimateRoutes: Route[] = [
  withoutCacheChange(
    repeatableRoute(
      "It writes nothing.",
      route(api.ai.estimate, (ctx, caller, { body }) => estimateRun(ctx, caller, body)),
    ),
  ),
];
