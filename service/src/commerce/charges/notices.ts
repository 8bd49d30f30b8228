import type { Context } from "../../core/context.ts";
import { invalidRequest } from "../../core/errors.ts";
import { type PaymentEvent, WebhookSignatureError } from "../../integrations/payments/payments.ts";
import { orUnavailable } from "./silence.ts";

type About = PaymentEvent["about"];

/** Who asks the provider what changed, by what its notice is about: worker.ts names them, because this room knows no other. */
export type NoticeHandlers = {
  [A in About]: (ctx: Context, notice: Extract<PaymentEvent, { about: A }>) => Promise<unknown>;
};

export type NoticeHeaders = Record<string, string | undefined>;

/**
 * Has whoever a notice concerns ask the provider. Nothing else of it is believed and none is remembered, so that notices may come
 * twice, late and in any order; without the provider's answer it is refused, so that it comes again.
 */
export async function takeNotice(
  ctx: Context,
  handlers: NoticeHandlers,
  body: Buffer,
  headers: NoticeHeaders,
): Promise<void> {
  await orUnavailable(async () => {
    const notice = await readNotice(ctx, body, headers);
    if (notice) await handlers[notice.about](ctx, notice as never);
  });
}

async function readNotice(ctx: Context, body: Buffer, headers: NoticeHeaders) {
  try {
    return await ctx.integrations.payments.parseWebhook(body, headers);
  } catch (error) {
    if (error instanceof WebhookSignatureError) throw invalidRequest("signature", error.message);
    throw error;
  }
}
