import { api } from "@stoa/contract";
import { route } from "../../platform/http/route.ts";
import { readTestSet, replaceTestSet } from "./test-sets.ts";

export const testSetRoutes = [
  route(api.products.testSet.get, (ctx, caller, { params }) => readTestSet(ctx, caller, params.productId)),
  route(api.products.testSet.replace, (ctx, caller, { params, body }) =>
    replaceTestSet(ctx, caller, params.productId, body.cases),
  ),
];
