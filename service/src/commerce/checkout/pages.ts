import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Context } from "../../core/context.ts";
import { toOrderReceipt } from "../orders/order-receipt.ts";
import { sendReceiptPage, sendReceiptPdf } from "../receipts/receipt-responses.ts";
import { renderDownload } from "./download.ts";
import { findLinkedOrder, type LinkedPage } from "./purchase-links.ts";

/** Signed links: browsers open them without an Authorization header. */
export function addPurchasePages(app: FastifyInstance, ctx: Context): void {
  const order = (request: FastifyRequest, page: LinkedPage) => {
    const { orderId } = request.params as { orderId: string };
    return findLinkedOrder(ctx, orderId, page, request.query as Record<string, unknown>);
  };

  app.get("/v1/purchases/:orderId/download", async (request, reply) => {
    const { format } = request.query as { format?: unknown };
    const file = await renderDownload(ctx, await order(request, "download"), {
      format: format === "json" ? "json" : "md",
      isHead: request.method === "HEAD",
    });
    return reply
      .header("content-disposition", `attachment; filename="${file.name}"`)
      .header("cache-control", "private, no-store")
      .type(file.type)
      .send(file.text);
  });

  app.get("/v1/purchases/:orderId/receipt", async (request, reply) =>
    sendReceiptPage(reply, await toOrderReceipt(ctx, await order(request, "receipt"))),
  );

  app.get("/v1/purchases/:orderId/receipt.pdf", async (request, reply) =>
    sendReceiptPdf(reply, await toOrderReceipt(ctx, await order(request, "receipt.pdf"))),
  );
}
