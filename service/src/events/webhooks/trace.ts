import { SpanKind } from "@opentelemetry/api";
import { toId } from "../../core/ids.ts";
import { markFailed, serverAttributes, tracer } from "../../core/telemetry/tracing.ts";
import type { PostResult } from "../../integrations/egress/post.ts";
import type { ClaimedDelivery } from "./delivery-queries.ts";

/**
 * The span names only the host, because paths and queries may contain secrets of receivers. The trace context is not sent to third
 * parties.
 */
export async function tracePost(
  delivery: ClaimedDelivery,
  post: () => Promise<PostResult>,
): Promise<PostResult> {
  const span = tracer.startSpan("deliver webhook", { kind: SpanKind.CLIENT, root: true });
  if (!span.isRecording()) return post();
  span.setAttributes({
    "http.request.method": "POST",
    ...serverAttributes(delivery.url),
    "stoa.delivery.id": toId("dlv", delivery.id),
    "stoa.delivery.attempt": delivery.attempts + 1,
    "stoa.event.id": toId("evt", delivery.eventId),
  });
  const result = await post();
  const { response: answer, problem } = result;
  if (answer) span.setAttribute("http.response.status_code", answer.status);
  if (problem) markFailed(span, problem);
  else if (answer && answer.status >= 300) markFailed(span, String(answer.status));
  span.end();
  return result;
}
