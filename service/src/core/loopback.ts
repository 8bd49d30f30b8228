const NAME = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

export const isLoopbackHost = (hostname: string): boolean => NAME.test(hostname);

export const isLoopbackOrigin = (origin: string): boolean => isLoopbackHost(new URL(origin).hostname);

/** A service that listens on every interface is also reachable on localhost. */
export function originAt(address: string, port: number): string {
  if (address === "0.0.0.0" || address === "::") return `http://localhost:${port}`;
  return `http://${address.includes(":") ? `[${address}]` : address}:${port}`;
}
