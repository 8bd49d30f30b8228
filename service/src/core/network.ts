import type { IncomingHttpHeaders } from "node:http";
import ipaddr from "ipaddr.js";

/** The network that shares a limit: an IPv4 address, or the /64 of an IPv6 address, the least that a subscriber has. */
export function networkOf(ip: string): string {
  if (!ipaddr.isValid(ip)) return "unknown";
  const address = ipaddr.process(ip);
  if (!(address instanceof ipaddr.IPv6)) return address.toString();
  const network = address.parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(":")}::/64`;
}

/**
 * The same, but null for this machine: that may be a proxy that nobody told us of, behind which one stranger would use up
 * everybody's.
 */
export const networkUnlessLoopback = (ip: string): string | null => (isLoopback(ip) ? null : networkOf(ip));

const isLoopback = (ip: string) => ipaddr.isValid(ip) && ipaddr.process(ip).range() === "loopback";

const WITH_PORT = /^(?:\[([^\]]+)\]|([^:]+))(?::\d+)?$/;

/** Some proxies write `203.0.113.7:51234` or `[2001:db8::1]:443`. Without the port removed, all clients would share one limit. */
export function removePorts(headers: IncomingHttpHeaders): void {
  const given = headers["x-forwarded-for"];
  if (given === undefined) return;
  const addresses = String(given).split(",");
  headers["x-forwarded-for"] = addresses
    .map((entry) => {
      const [, v6, v4] = WITH_PORT.exec(entry.trim()) ?? [];
      return v6 ?? v4 ?? entry.trim();
    })
    .join(", ");
}
