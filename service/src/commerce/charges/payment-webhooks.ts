import type { Context } from "../../core/context.ts";
import { invalidRequest } from "../../core/errors.ts";
import { type PaymentEvent, WebhookSignatureError } from "../../integrations/payments/payments.ts";
import { unavailableIfUnreachable } from "./provider-errors.ts";

type WebhookTopic = PaymentEvent["about"];

/** Who asks the provider what changed, by what its notice is about: worker.ts names them, because this room knows no other. */
export type PaymentWebhookHandlers = {
  [A in WebhookTopic]: (ctx: Context, notice: Extract<PaymentEvent, { about: A }>) => Promise<unknown>;
};

export type WebhookHeaders = Record<string, string | undefined>;

/**
 * Has whoever a notice concerns ask the provider. Nothing else of it is believed and none is remembered, so that notices may come
 * twice, late and in any order; without the provider's answer it is refused, so that it comes again.
 */
export async function receivePaymentWebhook(
  ctx: Context,
  handlers: PaymentWebhookHandlers,
  body: Buffer,
  headers: WebhookHeaders,
): Promise<void> {
  await unavailableIfUnreachable(async () => {
    const notice = await parseWebhook(ctx, body, headers);
    if (notice) await handlers[notice.about](ctx, notice as never);
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
