import type { IncomingHttpHeaders } from "node:http";
import ipaddr from "ipaddr.js";

/** The unit of rate limits: an IPv4 address, or an IPv6 /64, the smallest network of a subscriber. */
export function networkOf(ip: string): string {
  if (!ipaddr.isValid(ip)) return "unknown";
  const address = ipaddr.process(ip);
  if (!(address instanceof ipaddr.IPv6)) return address.toString();
  const network = address.parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(":")}::/64`;
}

/** Null for loopback: an unconfigured proxy may connect from there, and one client would use up the limit of all. */
export const networkUnlessLoopback = (ip: string): string | null => (isLoopback(ip) ? null : networkOf(ip));

const isLoopback = (ip: string) => ipaddr.isValid(ip) && ipaddr.process(ip).range() === "loopback";

const WITH_PORT = /^(?:\[([^\]]+)\]|([^:]+))(?::\d+)?$/;

/** Some proxies write `203.0.113.7:51234` or `[2001:db8::1]:443`. With the port, all clients would share one limit. */
export function removePorts(headers: IncomingHttpHeaders): void {
  const header = headers["x-forwarded-for"];
  if (header === undefined) return;
  const addresses = String(header).split(",");
  headers["x-forwarded-for"] = addresses
    .map((entry) => {
      const [, v6, v4] = WITH_PORT.exec(entry.trim()) ?? [];
      return v6 ?? v4 ?? entry.trim();
    })
    .join(", ");
}
