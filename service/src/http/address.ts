import ipaddr from "ipaddr.js";

/** Whom an address stands for: itself, or of IPv6 its /64, which is what one customer has at least. */
export function addressBlock(ip: string): string {
  if (!ipaddr.isValid(ip)) return "unknown";
  const address = ipaddr.process(ip);
  if (!(address instanceof ipaddr.IPv6)) return address.toString();
  const network = address.parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(":")}::/64`;
}
