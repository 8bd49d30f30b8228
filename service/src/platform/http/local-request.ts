import type { FastifyRequest } from "fastify";
import type { Context } from "../../core/context.ts";
import { isLoopbackHost, isLoopbackOrigin } from "../../core/loopback.ts";

const LOOPBACK = /^(::ffff:)?127\.|^::1$/;
/** Headers that proxies add. */
const PROXY_HEADER = /^(forwarded|via|x-forwarded-.*|x-real-ip|x-client-ip|cf-connecting-ip)$/;

/**
 * Whether the request comes from this machine, to its own name, and through no proxy. A page elsewhere may give its host
 * name our address (DNS rebinding) and read the answer, so the name matters. With another public address, a proxy
 * without forwarding headers is possible: nginx 1.29.7 sends HTTP/1.1 to `127.0.0.1:4000`.
 */
export function isLocalRequest(request: FastifyRequest, origin: string): boolean {
  return isLoopbackOrigin(origin) && isLoopbackRequest(request, origin);
}

/** For harmless pages, with any public address. */
export function isLoopbackRequest(request: FastifyRequest, origin: string): boolean {
  if (!isLoopbackConnection(request) || isProxied(request)) return false;
  const name = URL.parse(`http://${request.headers.host}`)?.hostname ?? "";
  return isLoopbackHost(name) || name === new URL(origin).hostname;
}

export const isProxied = ({ headers, raw }: FastifyRequest): boolean =>
  // nginx before 1.29.7 sends HTTP/1.0 by default.
  raw.httpVersion === "1.0" || Object.keys(headers).some((name) => PROXY_HEADER.test(name));

function isLoopbackConnection({ socket: { remoteAddress = "", localAddress } }: FastifyRequest): boolean {
  return LOOPBACK.test(remoteAddress) || remoteAddress === localAddress;
}

/** The Host header of a local request that names another machine; undefined: none does. */
function foreignHostOf(request: FastifyRequest): string | undefined {
  const { host, origin, "x-forwarded-host": forwarded } = request.headers;
  const named = [forwarded && `http://${forwarded}`, host && `http://${host}`, origin];
  const hosts = named.map((url) => URL.parse(String(url))?.hostname ?? "");
  return hosts.find((name) => name !== "" && !isLoopbackHost(name));
}

const namesOnlyHost = (name: string | undefined, { headers }: FastifyRequest): boolean =>
  headers.host === name && headers.origin === undefined && headers["x-forwarded-host"] === undefined;

/**
 * Warns once about a proxy on this machine that the settings do not mention: without forwarding headers, its requests
 * count as local. With STOA_PUBLIC_URL, no request does.
 */
export function createProxyWarning({ config, log, links }: Context): (request: FastifyRequest) => void {
  let isDone = config.publicUrl !== null;
  /** Most requests have this Host header, and parsing it takes 2 % of the CPU of a short request. */
  let lastLocalHost: string | undefined;
  return (request) => {
    if (isDone || !isLoopbackOrigin(links.origin()) || !isLoopbackConnection(request)) return;
    if (namesOnlyHost(lastLocalHost, request)) return;
    const host = foreignHostOf(request);
    if (host === undefined) {
      lastLocalHost = request.headers.host;
      return;
    }
    isDone = true;
    log.warn(
      { host },
      "a proxy on this machine passes requests of others, and STOA_PUBLIC_URL is not set: /metrics and, in a test environment, /dev may be open to all who reach the proxy. Set STOA_PUBLIC_URL to the address that people use",
    );
  };
}
