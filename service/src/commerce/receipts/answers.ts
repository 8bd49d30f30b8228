import type { FastifyReply } from "fastify";
import { type Receipt, receiptHtml, receiptPdf, receiptPolicy } from "./receipt.ts";

/** Behind a signed link: nobody else may keep what it shows. */
const unkept = { "cache-control": "private, no-store" };

export const sendReceipt = (reply: FastifyReply, receipt: Receipt): FastifyReply =>
  reply
    .headers({ ...unkept, "content-security-policy": receiptPolicy })
    .type("text/html; charset=utf-8")
    .send(receiptHtml(receipt));

export const sendReceiptPdf = async (reply: FastifyReply, receipt: Receipt): Promise<FastifyReply> =>
  reply
    .headers({ ...unkept, "content-disposition": `inline; filename="receipt-${receipt.number}.pdf"` })
    .type("application/pdf")
    .send(await receiptPdf(receipt));
