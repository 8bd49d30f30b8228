import type { FastifyReply } from "fastify";
import { type Receipt, receiptPdf, receiptPolicy, renderReceiptHtml } from "./receipt.ts";

/** The URL is a signed link: no cache may store the response. */
const noStore = { "cache-control": "private, no-store" };

export const sendReceiptPage = (reply: FastifyReply, receipt: Receipt): FastifyReply =>
  reply
    .headers({ ...noStore, "content-security-policy": receiptPolicy })
    .type("text/html; charset=utf-8")
    .send(renderReceiptHtml(receipt));

export const sendReceiptPdf = async (reply: FastifyReply, receipt: Receipt): Promise<FastifyReply> =>
  reply
    .headers({ ...noStore, "content-disposition": `inline; filename="receipt-${receipt.number}.pdf"` })
    .type("application/pdf")
    .send(await receiptPdf(receipt));
