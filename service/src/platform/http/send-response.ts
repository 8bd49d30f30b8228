import type { OutgoingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import { isCurrent } from "./conditional.ts";
import { bodyTextOf, type RenderedResponse } from "./envelope.ts";
import { toPlainName } from "./plain-cookies.ts";
import type { Cookie } from "./route.ts";

/** `__Host-` requires Secure, Path=/ and no Domain; browsers also store it on http://localhost. */
export function setCookies(reply: FastifyReply, cookies: Cookie[]): void {
  if (cookies.length === 0) return;
  const isPlain = reply.server.hasPlainCookies();
  for (const { name, value, maxAgeSeconds } of cookies) {
    reply.setCookie(isPlain ? toPlainName(name) : name, value, {
      path: "/",
      httpOnly: true,
      secure: !isPlain,
      sameSite: "lax",
      maxAge: maxAgeSeconds,
    });
  }
}

const CONDITIONAL_METHODS = new Set(["GET", "HEAD"]);

/** Sends a response, or 304 if the client has it. */
export function sendResponse(request: FastifyRequest, reply: FastifyReply, rendered: RenderedResponse) {
  const { status, body, file, stream, headers, cookies = [] } = rendered;
  reply.headers(headers);
  setCookies(reply, cookies);
  if (headers["etag"]) reply.headers({ "cache-control": "private", vary: "Authorization, Cookie" });
  if (cookies.length > 0 || "api_key" in (request.query as object) || mayShowSecret(request))
    reply.header("cache-control", "no-store");
  if (status === 200 && CONDITIONAL_METHODS.has(request.method) && isCurrent(request, headers["etag"])) {
    return reply.code(304).send();
  }
  if (request.method === "HEAD" && (file || stream)) return sendHeaders(reply.code(status), file);
  if (file) return reply.code(status).send(file);
  reply.code(status).header("content-type", "application/json; charset=utf-8");
  // Fastify handles a client that has disconnected.
  if (typeof body === "string" || reply.raw.destroyed) return reply.send(bodyTextOf(rendered));
  return sendParts(reply, body);
}

/** The length of a generated file is unknown. An empty stream omits Content-Length. */
function sendHeaders(reply: FastifyReply, file: Readable | undefined): FastifyReply {
  file?.destroy();
  return reply.send(Readable.from([]));
}

/** At the sign-in paths also errors: one has the challenge of the second factor. */
function mayShowSecret({ routeOptions }: FastifyRequest): boolean {
  const { endpoint } = routeOptions.config;
  return endpoint !== undefined && (endpoint.showsSecret || endpoint.base === "/api/auth");
}

/** In parts: joining them would copy a whole list for each request. */
function sendParts(reply: FastifyReply, parts: Buffer[]): FastifyReply {
  const bytes = parts.reduce((sum, { length }) => sum + length, 0);
  reply.header("content-length", bytes).hijack();
  reply.raw.writeHead(reply.statusCode, reply.getHeaders() as OutgoingHttpHeaders);
  for (const part of parts.slice(0, -1)) reply.raw.write(part);
  reply.raw.end(parts.at(-1));
  return reply;
}
