import { type Attributes, context, propagation, type Span, SpanKind, trace } from "@opentelemetry/api";
import type { FastifyReply, FastifyRequest } from "fastify";
import { markFailed, tracer, withSpan } from "../../core/telemetry/tracing.ts";

/** Health checks and metrics, requested every few seconds. */
export const QUIET_ROUTES: ReadonlySet<string | undefined> = new Set(["/healthz", "/readyz", "/metrics"]);

/**
 * The span of a request, within its caller's trace. Name and attributes contain the route's pattern only, since paths
 * and queries may contain ids and one-time secrets. null: not traced.
 */
export function startRequestSpan({ method, protocol, routeOptions, headers }: FastifyRequest): Span | null {
  const route = routeOptions.url;
  if (QUIET_ROUTES.has(route)) return null;
  const attributes: Attributes = {
    "http.request.method": method,
    "url.scheme": protocol,
    ...(route !== undefined && { "http.route": route }),
  };
  const parent = propagation.extract(context.active(), headers);
  const name = route === undefined ? method : `${method} ${route}`;
  const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent);
  // Without an SDK it belongs to no trace.
  return trace.isSpanContextValid(span.spanContext()) ? span : null;
}

export function endRequestSpan({ span }: FastifyRequest, { statusCode }: FastifyReply): void {
  if (!span) return;
  span.setAttribute("http.response.status_code", statusCode);
  if (statusCode >= 500) markFailed(span, String(statusCode));
  span.end();
}

export const withRequestSpan = <T>({ span }: FastifyRequest, work: () => T): T =>
  span ? withSpan(span, work) : work();

/** For the log; undefined: the trace is not sent. */
export const traceIdOf = ({ span }: FastifyRequest): string | undefined =>
  span?.isRecording() ? span.spanContext().traceId : undefined;
