import ipaddr from "ipaddr.js";

/** Who shares an allowance: an IPv4 address, or of IPv6 the /64 that one subscriber has at least. */
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
export const networkOfStranger = (ip: string): string | null => (isLoopback(ip) ? null : networkOf(ip));

const isLoopback = (ip: string) => ipaddr.isValid(ip) && ipaddr.process(ip).range() === "loopback";
