import { api } from "@stoa/contract";
import { type Route, resumableRoute, route } from "../../platform/http/route.ts";
import { refuseLostTry, runTry } from "./run-try.ts";
import { readTryOut, setTryOut, turnTryOutOff } from "./try-outs.ts";

export const tryOutRoutes: Route[] = [
  route(api.tryOuts.get, (ctx, caller, { params }) => readTryOut(ctx, caller, params.productId)),
  route(api.tryOuts.set, (ctx, caller, { params, body }) => setTryOut(ctx, caller, params.productId, body)),
  route(api.tryOuts.delete, (ctx, caller, { params }) => turnTryOutOff(ctx, caller, params.productId)),
  resumableRoute(
    api.tryOuts.run,
    (ctx, caller, { params, body }, info) => runTry(ctx, caller, params.productId, body, info),
    refuseLostTry,
  ),
];
