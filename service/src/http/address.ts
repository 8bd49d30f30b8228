import ipaddr from "ipaddr.js";

/** Whom an address stands for: itself, or of IPv6 its /64, which is what one customer has at least. */
export function addressBlock(ip: string): string {
  if (!ipaddr.isValid(ip)) return "unknown";
  const address = ipaddr.process(ip);
  if (address.kind() === "ipv4") return address.toString();
  const network = ipaddr.IPv6.networkAddressFromCIDR(`${address.toNormalizedString()}/64`);
  return `${network}/64`;
}
