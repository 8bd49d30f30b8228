import type { IncomingHttpHeaders } from "node:http";
import type { FastifyInstance } from "fastify";
import type { Context } from "../context.ts";
import { ApiError } from "../errors.ts";
import { testPagesOnly } from "../http/test-pages.ts";
import { type NoticeHandlers, type NoticeHeaders, takeNotice } from "./notices.ts";

const MAX_NOTICE_BYTES = 256 * 1024;
const NOTHING = Buffer.alloc(0);

/** Where the payment provider posts that something changed. Its signature stands for it, and is over the bytes as they came. */
export function addNoticeDoor(app: FastifyInstance, ctx: Context, handlers: NoticeHandlers): void {
  app.post("/payments/webhooks/:provider", { bodyLimit: MAX_NOTICE_BYTES }, async (request) => {
    const { provider } = request.params as { provider: string };
    if (provider !== ctx.outside.payments.name) throw new ApiError("NOT_FOUND");
    const body = Buffer.isBuffer(request.body) ? request.body : NOTHING;
    await takeNotice(ctx, handlers, body, singly(request.headers));
    return { received: true };
  });
}

/** /dev/payments leads to the test provider's page, for somebody on the machine itself. */
export function addBankPage(app: FastifyInstance, ctx: Context): void {
  const { bankPage } = ctx.outside;
  if (bankPage === null) return;
  app.get("/dev/payments", { onRequest: testPagesOnly(ctx) }, async (_request, reply) =>
    reply.redirect(bankPage),
  );
}

/** A header that came more than once says nothing. */
const singly = (headers: IncomingHttpHeaders): NoticeHeaders =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, typeof value === "string" ? value : undefined]),
  );
