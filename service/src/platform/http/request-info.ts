import type { FastifyReply, FastifyRequest } from "fastify";
import { parseBearer, SESSION_COOKIE } from "./authenticate.ts";
import { isUpload, type RequestBody, toRawBody } from "./body.ts";
import { parsePrefer } from "./prefer.ts";
import { requestSourceOf } from "./request-source.ts";
import type { RequestInfo } from "./route.ts";
import { isCrossSite, isFromBrowser } from "./same-origin.ts";

/** What a verb may want to know of its request beside the input. */
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

/** Whoever takes JSON as well is answered by it: clients list both that can read both. */
function wantsEvents({ headers: { accept = "" } }: FastifyRequest): boolean {
  return /\btext\/event-stream\b/i.test(accept) && !/\bapplication\/json\b|\*\/\*/i.test(accept);
}

/** As browsers say it now, and as they said it before there was a standard. */
const isPrefetch = ({ headers }: FastifyRequest): boolean =>
  ["sec-purpose", "purpose", "x-purpose", "x-moz"].some((name) =>
    /prefetch|preview/i.test(String(headers[name])),
  );

/** By its cookie: a credential in the header or the query was given by whoever asks. */
const isCrossSiteNavigation = (request: FastifyRequest): boolean =>
  request.headers.authorization === undefined &&
  // An empty parameter counts as absent, as in presentedBy().
  !(request.query as Record<string, unknown>)["api_key"] &&
  request.cookies[SESSION_COOKIE] !== undefined &&
  isCrossSite(request);

function disconnectSignalUnlessRepeatable(request: FastifyRequest, reply: FastifyReply): AbortSignal | null {
  return request.headers["idempotency-key"] === undefined ? disconnectSignalOf(reply) : null;
}

/** Aborts when the client hangs up before it has its answer. */
export function disconnectSignalOf(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  const abort = () => gone.abort(new Error("the client went away"));
  if (reply.raw.destroyed) abort();
  reply.raw.once("close", () => {
    if (!reply.raw.writableFinished) abort();
  });
  return gone.signal;
}
