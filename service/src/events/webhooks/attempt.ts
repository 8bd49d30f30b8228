import type { Context } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { readEventBody } from "../outbox/outbox.ts";
import type { AttemptPost } from "./attempt-result.ts";
import type { ClaimedDelivery, DeliveryAttempt } from "./delivery-queries.ts";
import { SecretCache } from "./secrets.ts";
import { createSignatureHeaders } from "./signature.ts";
import { tracePost } from "./trace.ts";

const USER_AGENT = "Stoa-Webhooks/1";

export interface PostedAttempt {
  attempt: DeliveryAttempt;
  post: AttemptPost;
}

/**
 * Posts a delivery once, with a new timestamp and signature. Never throws. Without a readable secret it sends nothing.
 */
export async function attemptDelivery(
  ctx: Context,
  delivery: ClaimedDelivery,
  secretCache = new SecretCache(ctx),
): Promise<PostedAttempt> {
  const { userId } = delivery;
  const secrets = secretCache.open(delivery.secrets.map((secret) => ({ ...secret, userId })));
  if (secrets.length === 0)
    return { attempt: createUnsentAttempt(ctx), post: { response: null, problem: "secret_unreadable" } };
  const body = readEventBody(ctx, delivery);
  const headers = createHeaders(ctx, { ...delivery, body }, secrets);
  const startedAt = ctx.now();
  const start = performance.now();
  const post = await tracePost(delivery, () =>
    ctx.integrations.poster.post(delivery.url, headers, body, ctx.shutdown),
  );
  const durationMs = Math.round(performance.now() - start);
  const attempt = { id: ctx.newId(), startedAt, endedAt: ctx.now(), durationMs, requestHeaders: headers };
  return { attempt: { ...attempt, response: post.response }, post };
}

function createHeaders(ctx: Context, delivery: ClaimedDelivery, secrets: string[]): Record<string, string> {
  const { body, content, prefix } = delivery;
  const timestamp = Math.floor(ctx.now().getTime() / 1000);
  const message = { id: toId("evt", delivery.eventId), attempt: delivery.attempts + 1, timestamp, body };
  return {
    "content-type": "application/json; charset=utf-8",
    "user-agent": USER_AGENT,
    ...createSignatureHeaders(ctx.config.webhookHeaderPrefix, message, secrets, { content, prefix }),
  };
}

/** An attempt that sent no request, or whose worker died before it could record the result. */
export function createUnsentAttempt(ctx: Context): DeliveryAttempt {
  const now = ctx.now();
  return { id: ctx.newId(), startedAt: now, endedAt: now, durationMs: 0, requestHeaders: {}, response: null };
}
