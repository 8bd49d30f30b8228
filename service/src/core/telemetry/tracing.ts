import {
  type Attributes,
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";

/** Of whatever SDK the process started (telemetry.start.ts); without one, all that is here does nothing. */
export const tracer = trace.getTracer("stoa");

/** Where a name of ours, or of the system, says what went wrong; never words. */
const errorTypeOf = (error: unknown): string => {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" ? code : "_OTHER";
};

/** Without a description: messages are for people who may read them. */
export function markFailed(span: Span, errorType: string): void {
  span.setAttribute("error.type", errorType);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/** Does something so that spans which begin meanwhile are children of this one. */
export const withSpan = <T>(span: Span, work: () => T): T =>
  context.with(trace.setSpan(context.active(), span), work);

/** A piece of work of this process as a span: it ends as the work does, and tells what it threw by its code alone. */
export async function inSpan<T>(
  name: string,
  attributes: Attributes,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  const span = tracer.startSpan(name, { kind: SpanKind.INTERNAL, attributes });
  try {
    return await withSpan(span, () => work(span));
  } catch (error) {
    markFailed(span, errorTypeOf(error));
    throw error;
  } finally {
    span.end();
  }
}

/** The current span as another process can point to it (W3C Trace Context); undefined: there is none. */
export function currentTraceparent(): string | undefined {
  const carrier: { traceparent?: string } = {};
  propagation.inject(context.active(), carrier);
  return carrier.traceparent;
}

/** Says of the current span what brought it about. */
export function addSpanLink(span: Span, traceparent: string | undefined): void {
  const cause = trace.getSpanContext(propagation.extract(ROOT_CONTEXT, { traceparent }));
  if (cause) span.addLink({ context: cause });
}

/** A host and its port; never a path or a query, which may hold somebody's secret. */
export function serverAttributes(address: string | undefined): Attributes {
  const url = address === undefined ? null : URL.parse(address);
  if (!url) return {};
  const usualPort = url.protocol === "http:" ? 80 : 443;
  return { "server.address": url.hostname, "server.port": Number(url.port) || usualPort };
}
