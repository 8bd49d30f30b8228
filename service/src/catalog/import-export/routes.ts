import { api } from "@stoa/contract";
import { resumableRoute, route } from "../../platform/http/route.ts";
import { exportProducts } from "./exports.ts";
import { readImportFile } from "./import-file.ts";
import { importProducts, resumeImport } from "./imports.ts";

export const importExportRoutes = [
  route(api.products.export, async (ctx, caller, { query }) => exportProducts(ctx, caller.userId, query)),
  resumableRoute(
    api.products.import,
    (ctx, caller, { query }, { rawBody, source }) =>
      importProducts(ctx, caller, (problems) => readImportFile(rawBody, problems), query, source),
    (ctx, caller, written, { query }, { source }) => resumeImport(ctx, caller, written, query, source),
  ),
];
