import { api } from "@stoa/contract";
import { REFERRAL_COOKIE } from "../../platform/http/referral-cookie.ts";
import { repeatableRoute, resumableRoute, route, withoutCacheChange } from "../../platform/http/route.ts";
import { listAllOrders, listSales, readAnyOrder, readSale } from "../orders/sales.ts";
import { refundBuyers } from "../refunds/refund-buyers.ts";
import {
  approveRequest,
  cancelRequest,
  listAllRefunds,
  listRefunds,
  readRefund,
  refundOrder,
  rejectRequest,
  requestRefund,
  resumeRefund,
} from "../refunds/refunds.ts";
import { buyProduct, listPurchases, readPurchase, resumePurchase } from "./purchases.ts";
import { readQuote } from "./quote.ts";
import { readSaleQuote } from "./sale-quote.ts";

export const purchaseRoutes = [
  resumableRoute(
    api.purchases.create,
    (ctx, caller, { body }, { bearer, cookies }) =>
      buyProduct(ctx, caller, body, bearer === null ? cookies[REFERRAL_COOKIE] : undefined),
    (ctx, caller, orderId) => resumePurchase(ctx, caller, orderId),
  ),
  withoutCacheChange(
    repeatableRoute(
      "It writes nothing.",
      route(api.purchases.quote, (ctx, caller, { body }) => readQuote(ctx, caller, body)),
    ),
  ),
  route(api.purchases.list, (ctx, caller, { query }) => listPurchases(ctx, caller, query)),
  route(api.purchases.get, (ctx, caller, { params }) => readPurchase(ctx, caller, params.orderId)),
  resumableRoute(
    api.refunds.create,
    (ctx, caller, { params, body }, { source }) => requestRefund(ctx, caller, params.orderId, body, source),
    resumeRefund,
  ),
  route(api.refunds.list, (ctx, caller, { query }) => listRefunds(ctx, caller, query)),
  route(api.refunds.get, (ctx, caller, { params }) => readRefund(ctx, caller, params.refundId)),
  resumableRoute(
    api.refunds.approve,
    (ctx, caller, { params }, { source }) => approveRequest(ctx, caller, params.refundId, source),
    resumeRefund,
  ),
  resumableRoute(
    api.refunds.reject,
    (ctx, caller, { params, body }, { source }) =>
      rejectRequest(ctx, caller, params.refundId, body.reason, source),
    resumeRefund,
  ),
  resumableRoute(
    api.refunds.cancel,
    (ctx, caller, { params }, { source }) => cancelRequest(ctx, caller, params.refundId, source),
    resumeRefund,
  ),
  route(api.admin.refunds.list, (ctx, _caller, { query }) => listAllRefunds(ctx, query)),
  resumableRoute(
    api.admin.orders.refund,
    (ctx, caller, { params, body }, { source }) => refundOrder(ctx, caller, params.orderId, body, source),
    resumeRefund,
  ),
  resumableRoute(
    api.admin.products.refundBuyers,
    (ctx, caller, { params }, { source }) => refundBuyers(ctx, caller, params.productId, source),
    async (_ctx, _caller, response) => JSON.parse(response),
  ),
  route(api.sales.quote, (ctx, caller, { query }) => readSaleQuote(ctx, caller, query)),
  route(api.sales.list, (ctx, caller, { query }) => listSales(ctx, caller, query)),
  route(api.sales.get, (ctx, caller, { params }) => readSale(ctx, caller, params.orderId)),
  route(api.admin.orders.list, (ctx, _caller, { query }) => listAllOrders(ctx, query)),
  route(api.admin.orders.get, (ctx, _caller, { params }) => readAnyOrder(ctx, params.orderId)),
];
