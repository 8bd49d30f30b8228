import { api } from "@stoa/contract";
import { repeatableRoute, route } from "../../platform/http/route.ts";
import { exportTestSetFile, importTestSetFile } from "./test-set-files.ts";
import { readTestSet, replaceTestSet } from "./test-sets.ts";

export const testSetRoutes = [
  route(api.products.testSet.get, (ctx, caller, { params }) => readTestSet(ctx, caller, params.productId)),
  route(api.products.testSet.replace, (ctx, caller, { params, body }) =>
    replaceTestSet(ctx, caller, params.productId, body.cases),
  ),
  repeatableRoute(
    "Equal cases are stored once.",
    route(api.products.testSet.import, (ctx, caller, { params, body }) =>
      importTestSetFile(ctx, caller, params.productId, body),
    ),
  ),
  route(api.products.testSet.export, (ctx, caller, { params, query }) =>
    exportTestSetFile(ctx, caller, params.productId, query.format),
  ),
];
