import type { FastifyRequest } from "fastify";
import type { Context } from "../../core/context.ts";
import { isLoopbackHost, isLoopbackOrigin } from "../../core/loopback.ts";

const LOOPBACK = /^(::ffff:)?127\.|^::1$/;
/** Headers that proxies add. */
const PROXY_HEADER = /^(forwarded|via|x-forwarded-.*|x-real-ip|x-client-ip|cf-connecting-ip)$/;

/**
 * Whether somebody on this very machine asks, by its own name and through no proxy. The name matters for browsers: a page
 * elsewhere may give its host name our address (DNS rebinding) and would then read the answer. Where the service has another
 * public address a proxy may be in front that says nothing of itself: nginx 1.29.7 asks in HTTP/1.1 for `127.0.0.1:4000`.
 */
export function isLocalRequest(request: FastifyRequest, origin: string): boolean {
  return isLoopbackOrigin(origin) && isLoopbackRequest(request, origin);
}

/** For pages that show nothing, at any public address. */
export function isLoopbackRequest(request: FastifyRequest, origin: string): boolean {
  if (!isLoopbackConnection(request) || isProxied(request)) return false;
  const name = URL.parse(`http://${request.headers.host}`)?.hostname ?? "";
  return isLoopbackHost(name) || name === new URL(origin).hostname;
}

export const isProxied = ({ headers, raw }: FastifyRequest): boolean =>
  // nginx before 1.29.7 asks in HTTP/1.0, unless it is configured otherwise.
  raw.httpVersion === "1.0" || Object.keys(headers).some((name) => PROXY_HEADER.test(name));

function isLoopbackConnection({ socket: { remoteAddress = "", localAddress } }: FastifyRequest): boolean {
  return LOOPBACK.test(remoteAddress) || remoteAddress === localAddress;
}

/** How a request names a host that is not this machine, though it comes from this machine; undefined: it does not. */
function foreignHostOf(request: FastifyRequest): string | undefined {
  const { host, origin, "x-forwarded-host": forwarded } = request.headers;
  const named = [forwarded && `http://${forwarded}`, host && `http://${host}`, origin];
  const hosts = named.map((url) => URL.parse(String(url))?.hostname ?? "");
  return hosts.find((name) => name !== "" && !isLoopbackHost(name));
}

/**
 * Warns once of a proxy on this machine that the service was not told of: what it passes without these headers counts as asked on this
 * machine. Where STOA_PUBLIC_URL is set nothing does.
 */
export function createProxyWarning({ config, log, links }: Context): (request: FastifyRequest) => void {
  let isDone = config.publicUrl !== null;
  return (request) => {
    if (isDone || !isLoopbackOrigin(links.origin()) || !isLoopbackConnection(request)) return;
    const host = foreignHostOf(request);
    if (host === undefined) return;
    isDone = true;
    log.warn(
      { host },
      "a proxy on this machine passes requests of others, and STOA_PUBLIC_URL is not set: /metrics and, in a test environment, /dev may be open to all who reach the proxy. Set STOA_PUBLIC_URL to the address that people use",
    );
  };
}
