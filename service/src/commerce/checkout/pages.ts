import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Context } from "../../core/context.ts";
import { receiptOf } from "../orders/receipt-of-order.ts";
import { sendReceipt, sendReceiptPdf } from "../receipts/answers.ts";
import { downloadOf } from "./download.ts";
import { type LinkedPage, orderOfLink } from "./links.ts";

/** The signed pages of a purchase: they work in a browser without a header. */
export function addPurchasePages(app: FastifyInstance, ctx: Context): void {
  const order = (request: FastifyRequest, page: LinkedPage) => {
    const { orderId } = request.params as { orderId: string };
    return orderOfLink(ctx, orderId, page, request.query as Record<string, unknown>);
  };

  app.get("/v1/purchases/:orderId/download", async (request, reply) => {
    const { format } = request.query as { format?: unknown };
    const file = await downloadOf(ctx, await order(request, "download"), {
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
    sendReceipt(reply, await receiptOf(ctx, await order(request, "receipt"))),
  );

  app.get("/v1/purchases/:orderId/receipt.pdf", async (request, reply) =>
    sendReceiptPdf(reply, await receiptOf(ctx, await order(request, "receipt.pdf"))),
  );
}
