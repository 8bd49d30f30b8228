import { api } from "@stoa/contract";
import { route } from "../http/route.ts";
import { listCategories } from "./categories.ts";
import { listProducts } from "./list.ts";

export const catalogueRoutes = [
  route(api.products.list, (ctx, caller, { query }) => listProducts(ctx, caller, query)),
  route(api.categories.list, (ctx, _caller, { query }) => listCategories(ctx, query)),
];
