import { api } from "@stoa/contract";
import { harmlessAgain, leavingMemory, type Route, route } from "../../platform/http/route.ts";
import { estimate } from "./estimate.ts";

export const estimateRoutes: Route[] = [
  leavingMemory(
    harmlessAgain(
      "It writes nothing.",
      route(api.ai.estimate, (ctx, caller, { body }) => estimate(ctx, caller, body)),
    ),
  ),
];
