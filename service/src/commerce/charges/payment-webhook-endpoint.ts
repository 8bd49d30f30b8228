import type { IncomingHttpHeaders } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { TEST_PAYMENTS_PATH } from "../../integrations/payments/fake-pages.ts";
import { requireSameOrigin } from "../../platform/http/same-origin.ts";
import { requireTestPageAccess } from "../../platform/http/test-pages.ts";
import {
  type PaymentWebhookHandlers,
  receivePaymentWebhook,
  type WebhookHeaders,
} from "./payment-webhooks.ts";

const MAX_WEBHOOK_BYTES = 256 * 1024;
const EMPTY_BODY = Buffer.alloc(0);

/** The signature over the raw bytes authenticates the request. */
export function addPaymentWebhookEndpoint(
  app: FastifyInstance,
  ctx: Context,
  handlers: PaymentWebhookHandlers,
): void {
  app.post("/payments/webhooks/:provider", { bodyLimit: MAX_WEBHOOK_BYTES }, async (request) => {
    const { provider } = request.params as { provider: string };
    if (provider !== ctx.integrations.payments.name) throw new ApiError("NOT_FOUND");
    const body = Buffer.isBuffer(request.body) ? request.body : EMPTY_BODY;
    await receivePaymentWebhook(ctx, handlers, body, singleHeaders(request.headers));
    return { received: true };
  });
}

/** Ids of the test provider have no other characters, so an id cannot escape its path. */
const ID = /^[A-Za-z0-9_-]+$/;
const MAX_FORM_BYTES = 1024;

/**
 * Serves pages of the test payment provider at the service's own origin, which every browser reaches. Links to payments and accounts
 * contain an unguessable id as the credential; the overview requires the operator.
 */
export function addTestPaymentPages(app: FastifyInstance, ctx: Context): void {
  const { testPayments } = ctx.integrations;
  if (testPayments === null) return;
  const operator = requireTestPageAccess(ctx);
  const sameOrigin = async (request: FastifyRequest) =>
    requireSameOrigin(request, ctx.links.origin(), "no objection");
  const show = async (reply: FastifyReply, path: string, form?: string) => {
    const page = await testPayments(path, form);
    if (page === null) throw new ApiError("SERVICE_UNAVAILABLE");
    return reply.code(page.status).headers(page.headers).send(page.body);
  };
  const submit = (noun: string) => (request: FastifyRequest, reply: FastifyReply) =>
    show(
      reply,
      testPagePath(noun, request),
      Buffer.isBuffer(request.body) ? request.body.toString("utf8") : "",
    );

  app.get(TEST_PAYMENTS_PATH, { onRequest: operator }, (_request, reply) => show(reply, "/"));
  for (const noun of ["disputes", "refunds", "payouts"])
    app.post(
      `${TEST_PAYMENTS_PATH}/${noun}/:id`,
      { onRequest: [operator, sameOrigin], bodyLimit: MAX_FORM_BYTES },
      submit(noun),
    );
  for (const noun of ["authorize", "onboarding", "cards"]) {
    const path = `${TEST_PAYMENTS_PATH}/${noun}/:id`;
    app.get(path, (request, reply) => show(reply, testPagePath(noun, request)));
    app.post(path, { onRequest: sameOrigin, bodyLimit: MAX_FORM_BYTES }, submit(noun));
  }
}

function testPagePath(noun: string, request: FastifyRequest): string {
  const { id } = request.params as { id: string };
  if (!ID.test(id)) throw new ApiError("NOT_FOUND");
  return `/${noun}/${id}`;
}

/** A repeated header counts as absent. */
const singleHeaders = (headers: IncomingHttpHeaders): WebhookHeaders =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, typeof value === "string" ? value : undefined]),
  );
