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

/** Without an SDK (sdk.ts) all functions here do nothing. */
export const tracer = trace.getTracer("stoa");

/** An error code of ours or of the system; never a message. */
const errorTypeOf = (error: unknown): string => {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" ? code : "_OTHER";
};

/** Without a description: messages may contain users' texts. */
export function markFailed(span: Span, errorType: string): void {
  span.setAttribute("error.type", errorType);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

export const withSpan = <T>(span: Span, work: () => T): T =>
  context.with(trace.setSpan(context.active(), span), work);

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

/** W3C Trace Context; undefined: no current span. */
export function currentTraceparent(): string | undefined {
  const carrier: { traceparent?: string } = {};
  propagation.inject(context.active(), carrier);
  return carrier.traceparent;
}

export function addSpanLink(span: Span, traceparent: string | undefined): void {
  const cause = trace.getSpanContext(propagation.extract(ROOT_CONTEXT, { traceparent }));
  if (cause) span.addLink({ context: cause });
}

/** Host and port only: a path or query may contain a secret. */
export function serverAttributes(address: string | undefined): Attributes {
  const url = address === undefined ? null : URL.parse(address);
  if (!url) return {};
  const usualPort = url.protocol === "http:" ? 80 : 443;
  return { "server.address": url.hostname, "server.port": Number(url.port) || usualPort };
}
