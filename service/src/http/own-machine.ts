import type { FastifyRequest } from "fastify";
import { isLoopbackHost, isLoopbackOrigin } from "../loopback.ts";

const LOOPBACK = /^(::ffff:)?127\.|^::1$/;
/** With any of these headers a proxy asks for somebody else. */
const PROXY_HEADER = /^(forwarded|via|x-forwarded-.*|x-real-ip|x-client-ip|cf-connecting-ip)$/;

/**
 * Whether somebody on this very machine asks, by its own name and through no proxy. The name matters for browsers: a page
 * elsewhere may give its host name our address (DNS rebinding) and would then read the answer. Where the service has another
 * public address a proxy may be in front that says nothing of itself: nginx 1.29.7 asks in HTTP/1.1 for `127.0.0.1:4000`.
 */
export function isFromThisMachine(request: FastifyRequest, origin: string): boolean {
  return isLoopbackOrigin(origin) && isFromOwnAddress(request, origin);
}

/** The same at any public address; enough where nothing is shown. */
export function isFromOwnAddress(request: FastifyRequest, origin: string): boolean {
  const { remoteAddress = "", localAddress } = request.socket;
  if ((!LOOPBACK.test(remoteAddress) && remoteAddress !== localAddress) || isProxied(request)) return false;
  const name = URL.parse(`http://${request.headers.host}`)?.hostname ?? "";
  return isLoopbackHost(name) || name === new URL(origin).hostname;
}

export const isProxied = ({ headers, raw }: FastifyRequest): boolean =>
  // nginx before 1.29.7 asks in HTTP/1.0, unless it is configured otherwise.
  raw.httpVersion === "1.0" || Object.keys(headers).some((name) => PROXY_HEADER.test(name));
