import type { Context } from "../../core/context.ts";
import { invalidRequest } from "../../core/errors.ts";
import { type PaymentEvent, WebhookSignatureError } from "../../integrations/payments/payments.ts";
import { unavailableIfUnreachable } from "./provider-errors.ts";

type WebhookTopic = PaymentEvent["about"];

/** `jobs.ts` lists the handlers, because this room imports no other. */
export type PaymentWebhookHandlers = {
  [A in WebhookTopic]: (ctx: Context, event: Extract<PaymentEvent, { about: A }>) => Promise<unknown>;
};

export type WebhookHeaders = Record<string, string | undefined>;

/**
 * Handlers read the object from the provider and trust nothing else in the payload, so webhooks may come twice, late and in any order. If
 * the provider does not answer, the response is an error and the provider repeats the webhook.
 */
export async function receivePaymentWebhook(
  ctx: Context,
  handlers: PaymentWebhookHandlers,
  body: Buffer,
  headers: WebhookHeaders,
): Promise<void> {
  await unavailableIfUnreachable(async () => {
    const event = await parseWebhook(ctx, body, headers);
    if (event) await handlers[event.about](ctx, event as never);
  });
}

async function parseWebhook(ctx: Context, body: Buffer, headers: WebhookHeaders) {
  try {
    return await ctx.integrations.payments.parseWebhook(body, headers);
  } catch (error) {
    if (error instanceof WebhookSignatureError) throw invalidRequest("signature", error.message);
    throw error;
  }
}
