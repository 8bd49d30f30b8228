const NAME = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

export const isLoopbackHost = (hostname: string): boolean => NAME.test(hostname);

/** Each request asks about the service's own origin. */
let lastOrigin = { origin: "", isLoopback: false };

export function isLoopbackOrigin(origin: string): boolean {
  if (lastOrigin.origin !== origin)
    lastOrigin = { origin, isLoopback: isLoopbackHost(new URL(origin).hostname) };
  return lastOrigin.isLoopback;
}

/** Where a server listens: an IP address. */
export interface ListeningAddress {
  address: string;
  port: number;
}

/** A service that listens on every interface is also reachable on localhost. */
export function originAt(address: string, port: number): string {
  if (address === "0.0.0.0" || address === "::") return `http://localhost:${port}`;
  return `http://${address.includes(":") ? `[${address}]` : address}:${port}`;
}
