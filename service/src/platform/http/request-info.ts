import type { FastifyReply, FastifyRequest } from "fastify";
import { parseBearer, SESSION_COOKIE } from "./authenticate.ts";
import { isUpload, type RequestBody, toRawBody } from "./body.ts";
import { parsePrefer } from "./prefer.ts";
import { requestSourceOf } from "./request-source.ts";
import type { RequestInfo } from "./route.ts";
import { isCrossSite, isFromBrowser } from "./same-origin.ts";

export const requestInfoOf = (
  request: FastifyRequest,
  reply: FastifyReply,
  body: RequestBody,
): RequestInfo => ({
  file: isUpload(body) ? body.file : null,
  ifMatch: request.headers["if-match"] ?? null,
  lastEventId: String(request.headers["last-event-id"] ?? "") || null,
  acceptsEvents: wantsEvents(request),
  prefer: parsePrefer(request.headers["prefer"]),
  source: requestSourceOf(request),
  cookies: request.cookies,
  bearer: parseBearer(request.headers.authorization),
  isFromBrowser: isFromBrowser(request),
  isHead: request.method === "HEAD",
  isPrefetch: isPrefetch(request),
  isCrossSiteNavigation: isCrossSiteNavigation(request),
  rawBody: toRawBody(body, request.headers["content-type"]),
  disconnectSignal: () => disconnectSignalUnlessRepeatable(request, reply),
});

/** A client that also accepts JSON gets JSON: clients that can read both list both. */
function wantsEvents({ headers: { accept = "" } }: FastifyRequest): boolean {
  return /\btext\/event-stream\b/i.test(accept) && !/\bapplication\/json\b|\*\/\*/i.test(accept);
}

const PURPOSE_HEADERS = ["sec-purpose", "purpose", "x-purpose", "x-moz"];

/** The standard header and its predecessors. */
const isPrefetch = ({ headers }: FastifyRequest): boolean =>
  PURPOSE_HEADERS.some(
    (name) => headers[name] !== undefined && /prefetch|preview/i.test(String(headers[name])),
  );

/** Only with the cookie: a page of another site cannot add the other credentials. */
const isCrossSiteNavigation = (request: FastifyRequest): boolean =>
  request.headers.authorization === undefined &&
  // An empty parameter counts as absent, as in presentedBy().
  !(request.query as Record<string, unknown>)["api_key"] &&
  request.cookies[SESSION_COOKIE] !== undefined &&
  isCrossSite(request);

function disconnectSignalUnlessRepeatable(request: FastifyRequest, reply: FastifyReply): AbortSignal | null {
  return request.headers["idempotency-key"] === undefined ? disconnectSignalOf(reply) : null;
}

/** Aborts when the client disconnects before the response is complete. */
export function disconnectSignalOf(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  const abort = () => gone.abort(new Error("the client went away"));
  if (reply.raw.destroyed) abort();
  reply.raw.once("close", () => {
    if (!reply.raw.writableFinished) abort();
  });
  return gone.signal;
}
