import type { FastifyRequest } from "fastify";

const LOOPBACK = /^(::ffff:)?127\.|^::1$/;
const LOOPBACK_NAME = /^(localhost|127(\.\d+){3}|\[::1\])$/;
/** What proxies say of whom they ask for: with any of them the request began elsewhere. */
const PROXY_HEADERS = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

/**
 * Whether somebody on this very machine asks, by its own name and through no proxy. The name matters for browsers: a page
 * elsewhere may give its host name our address (DNS rebinding) and would then read what it is answered.
 */
export function isFromThisMachine(request: FastifyRequest, origin: string): boolean {
  const { remoteAddress = "", localAddress } = request.socket;
  if (!LOOPBACK.test(remoteAddress) && remoteAddress !== localAddress) return false;
  if (PROXY_HEADERS.some((name) => request.headers[name] !== undefined)) return false;
  // nginx, unless told otherwise, says nothing of whom it asks for, but speaks as only proxies do any more.
  if (request.raw.httpVersion === "1.0") return false;
  const name = URL.parse(`http://${request.headers.host}`)?.hostname ?? "";
  const own = new URL(origin);
  // We speak no TLS: under a name of https somebody else took the call.
  return LOOPBACK_NAME.test(name) || (own.protocol === "http:" && name === own.hostname);
}
