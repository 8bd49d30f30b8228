import { api } from "@stoa/contract";
import { route } from "../http/route.ts";
import { buyProduct, listPurchases, readPurchase } from "./orders.ts";
import { listAllOrders, listSales, readAnyOrder } from "./sales.ts";

export const purchaseRoutes = [
  route(api.purchases.create, (ctx, caller, { body }) => buyProduct(ctx, caller, body)),
  route(api.purchases.list, (ctx, caller, { query }) => listPurchases(ctx, caller, query)),
  route(api.purchases.get, (ctx, caller, { params }) => readPurchase(ctx, caller, params.orderId)),
  route(api.sales.list, (ctx, caller, { query }) => listSales(ctx, caller, query)),
  route(api.admin.orders, (ctx, _caller, { query }) => listAllOrders(ctx, query)),
  route(api.admin.order, (ctx, _caller, { params }) => readAnyOrder(ctx, params.orderId)),
];
