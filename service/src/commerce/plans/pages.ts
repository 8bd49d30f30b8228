import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Context } from "../../core/context.ts";
import { sendReceiptPage, sendReceiptPdf } from "../receipts/receipt-responses.ts";
import { findLinkedReceipt, type ReceiptPage } from "./plan-receipt.ts";

/** Signed links: browsers open them without an Authorization header. */
export function addPlanPages(app: FastifyInstance, ctx: Context): void {
  const receipt = (request: FastifyRequest, page: ReceiptPage) => {
    const { paymentId } = request.params as { paymentId: string };
    return findLinkedReceipt(ctx, paymentId, page, request.query as Record<string, unknown>);
  };

  app.get("/v1/account/subscription/payments/:paymentId/receipt", async (request, reply) =>
    sendReceiptPage(reply, await receipt(request, "receipt")),
  );

  app.get("/v1/account/subscription/payments/:paymentId/receipt.pdf", async (request, reply) =>
    sendReceiptPdf(reply, await receipt(request, "receipt.pdf")),
  );
}
