import type { Context } from "../context.ts";
import { toId } from "../ids.ts";
import type { PostResult } from "../outside/post.ts";
import type { Attempt, Claimed } from "./delivery-queries.ts";
import { openSecret } from "./secrets.ts";
import { messageHeaders } from "./signature.ts";

const USER_AGENT = "Stoa-Webhooks/1";

export interface Made {
  attempt: Attempt;
  result: PostResult;
}

/** Posts a delivery once: the event's own bytes, stamped and signed now. Never throws. */
export async function attemptDelivery(ctx: Context, delivery: Claimed): Promise<Made> {
  const headers = headersOf(ctx, delivery);
  const startedAt = ctx.now();
  const start = performance.now();
  const result = await ctx.outside.poster.post(delivery.url, headers, delivery.body, ctx.shutdown);
  const durationMs = Math.round(performance.now() - start);
  const attempt = { id: ctx.newId(), startedAt, endedAt: ctx.now(), durationMs, requestHeaders: headers };
  return { attempt: { ...attempt, answer: result.answer }, result };
}

function headersOf(ctx: Context, delivery: Claimed): Record<string, string> {
  const { body, content, prefix } = delivery;
  const timestamp = Math.floor(ctx.now().getTime() / 1000);
  const message = { id: toId("evt", delivery.eventId), attempt: delivery.attempts + 1, timestamp, body };
  const secrets = delivery.secrets.map((secret) => openSecret(ctx, delivery.userId, secret));
  return {
    "content-type": "application/json; charset=utf-8",
    "user-agent": USER_AGENT,
    ...messageHeaders(ctx.config.webhookHeaderPrefix, message, secrets, { content, prefix }),
  };
}

/** Of a delivery that ended several workers before they could say how it went. */
export function lostAttempt(ctx: Context): Attempt {
  const now = ctx.now();
  return { id: ctx.newId(), startedAt: now, endedAt: now, durationMs: 0, requestHeaders: {}, answer: null };
}
