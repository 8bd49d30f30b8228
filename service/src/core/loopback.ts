const NAME = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** By the host of a URL: a name or address that leads every machine to itself. */
export const isLoopbackHost = (hostname: string): boolean => NAME.test(hostname);

/** Whether the service is used on its own machine alone. */
export const isLoopbackOrigin = (origin: string): boolean => isLoopbackHost(new URL(origin).hostname);

/** Where somebody reaches a service that listens there. A service on every interface is reached on its own machine, too. */
export function originAt(address: string, port: number): string {
  if (address === "0.0.0.0" || address === "::") return `http://localhost:${port}`;
  return `http://${address.includes(":") ? `[${address}]` : address}:${port}`;
}
