import type { Context } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { bodyOf } from "../outbox/outbox.ts";
import type { Attempt, Claimed } from "./delivery-queries.ts";
import type { Result } from "./outcome.ts";
import { openSecrets } from "./secrets.ts";
import { messageHeaders } from "./signature.ts";
import { tracePost } from "./trace.ts";

const USER_AGENT = "Stoa-Webhooks/1";

export interface Made {
  attempt: Attempt;
  result: Result;
}

/** Posts a delivery once: the event's own bytes, stamped and signed now; without its secret not at all. Never throws. */
export async function attemptDelivery(ctx: Context, delivery: Claimed): Promise<Made> {
  const { userId } = delivery;
  const secrets = openSecrets(
    ctx,
    delivery.secrets.map((secret) => ({ ...secret, userId })),
  );
  if (secrets.length === 0)
    return { attempt: unpostedAttempt(ctx), result: { response: null, problem: "secret_unreadable" } };
  const body = bodyOf(ctx, delivery);
  const headers = headersOf(ctx, { ...delivery, body }, secrets);
  const startedAt = ctx.now();
  const start = performance.now();
  const result = await tracePost(delivery, () =>
    ctx.integrations.poster.post(delivery.url, headers, body, ctx.shutdown),
  );
  const durationMs = Math.round(performance.now() - start);
  const attempt = { id: ctx.newId(), startedAt, endedAt: ctx.now(), durationMs, requestHeaders: headers };
  return { attempt: { ...attempt, answer: result.response }, result };
}

function headersOf(ctx: Context, delivery: Claimed, secrets: string[]): Record<string, string> {
  const { body, content, prefix } = delivery;
  const timestamp = Math.floor(ctx.now().getTime() / 1000);
  const message = { id: toId("evt", delivery.eventId), attempt: delivery.attempts + 1, timestamp, body };
  return {
    "content-type": "application/json; charset=utf-8",
    "user-agent": USER_AGENT,
    ...messageHeaders(ctx.config.webhookHeaderPrefix, message, secrets, { content, prefix }),
  };
}

/** One that came to no post, or ended several workers before they could say how it went. */
export function unpostedAttempt(ctx: Context): Attempt {
  const now = ctx.now();
  return { id: ctx.newId(), startedAt: now, endedAt: now, durationMs: 0, requestHeaders: {}, answer: null };
}
