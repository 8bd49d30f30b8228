import { api } from "@stoa/contract";
import { route } from "../http/route.ts";
import { buyProduct, listPurchases, readPurchase } from "./orders.ts";

export const purchaseRoutes = [
  route(api.purchases.create, (ctx, caller, { body }) => buyProduct(ctx, caller, body)),
  route(api.purchases.list, (ctx, caller, { query }) => listPurchases(ctx, caller, query)),
  route(api.purchases.get, (ctx, caller, { params }) => readPurchase(ctx, caller, params.orderId)),
];
