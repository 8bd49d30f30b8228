import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { DOWNLOAD_LINK_MINUTES, linkExpiry } from "../../core/links.ts";
import { findOrder, type OrderRow } from "../orders/queries.ts";

const PAID_STATUSES = new Set<OrderRow["status"]>([
  "completed",
  "partially_refunded",
  "refunded",
  "disputed",
]);

export type LinkedPage = "download" | "receipt" | "receipt.pdf";
const linkPath = (orderId: string, page: LinkedPage) => `/v1/purchases/${orderId}/${page}`;

const signLink = (ctx: Context, order: OrderRow, page: LinkedPage): string =>
  ctx.links.sign(linkPath(toId("ord", order.id), page), linkExpiry(ctx.now(), DOWNLOAD_LINK_MINUTES));

/** null until the purchase is completed, and after its entitlement is revoked. */
export const downloadUrl = (ctx: Context, order: OrderRow): string | null =>
  order.entitlementStatus === "active" ? signLink(ctx, order, "download") : null;

export const receiptUrls = (ctx: Context, order: OrderRow) =>
  PAID_STATUSES.has(order.status)
    ? { url: signLink(ctx, order, "receipt"), pdf: signLink(ctx, order, "receipt.pdf") }
    : { url: null, pdf: null };

/** The signature authenticates the buyer. */
export async function findLinkedOrder(
  ctx: Context,
  orderId: string,
  page: LinkedPage,
  query: { expires?: unknown; signature?: unknown },
): Promise<OrderRow> {
  if (!ctx.links.isValid(linkPath(orderId, page), query, ctx.now())) {
    throw new ApiError(
      "UNAUTHORIZED",
      "This link has expired or was changed. Open your purchase again for a new one.",
    );
  }
  const id = toUuid("ord", orderId);
  const order = id ? await findOrder(ctx.db, id) : undefined;
  if (!order || !PAID_STATUSES.has(order.status)) throw new ApiError("ORDER_NOT_FOUND");
  return order;
}
