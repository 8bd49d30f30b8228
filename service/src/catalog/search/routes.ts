import { api } from "@stoa/contract";
import { route } from "../../platform/http/route.ts";
import { listCategories } from "./categories.ts";
import { readFacets } from "./facets.ts";
import { listProducts } from "./product-list.ts";
import { listTags } from "./tags.ts";

export const catalogRoutes = [
  route(api.products.list, (ctx, caller, { query }) => listProducts(ctx, caller, query)),
  route(api.products.facets, (ctx, caller, { query }) => readFacets(ctx, caller, query)),
  route(api.tags.list, (ctx, _caller, { query }) => listTags(ctx, query)),
  route(api.categories.list, (ctx, _caller, { query }) => listCategories(ctx, query)),
];
