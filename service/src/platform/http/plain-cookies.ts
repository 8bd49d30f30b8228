import type { FastifyRequest } from "fastify";
import type { Context } from "../../core/context.ts";
import { isLoopbackHost, isLoopbackOrigin } from "../../core/loopback.ts";
import { isProxied } from "./local-request.ts";

const SECURE_PREFIX = "__Host-";
const PLAIN_PREFIX = "stoa-";

/**
 * Browsers drop a Secure cookie over plain HTTP from another machine, so sign-in would fail. In a test environment with
 * such an address, cookies are not Secure and have another prefix. Production refuses to start there.
 */
export const hasPlainCookies = ({ config, links }: Pick<Context, "config" | "links">): boolean =>
  config.environment === "test" && links.origin().startsWith("http:") && !isLoopbackOrigin(links.origin());

export const toPlainName = (name: string): string =>
  name.startsWith(SECURE_PREFIX) ? PLAIN_PREFIX + name.slice(SECURE_PREFIX.length) : name;

/** Renames the request's cookies, so that other code has one name only. */
export function readPlainCookies({ cookies }: FastifyRequest): void {
  for (const [name, value] of Object.entries(cookies))
    if (name.startsWith(PLAIN_PREFIX)) cookies[SECURE_PREFIX + name.slice(PLAIN_PREFIX.length)] ??= value;
}

/**
 * The requested address when sign-in cannot work there, because it is not the service's own. null: it is right, or a
 * proxy sent the request and may have changed it.
 */
export function wrongAddress(
  { config, links }: Pick<Context, "config" | "links">,
  request: FastifyRequest,
): string | null {
  if (config.environment !== "test" || isProxied(request)) return null;
  const own = new URL(links.origin());
  const given = URL.parse(`${own.protocol}//${request.headers.host}`);
  if (!given || given.host === own.host || isLoopbackHost(given.hostname)) return null;
  return `${request.protocol}://${given.host}`;
}
