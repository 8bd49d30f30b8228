const NAME = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Whether the host of a URL is a name or address of the machine itself. */
export const isLoopbackHost = (hostname: string): boolean => NAME.test(hostname);

/** Whether only its own machine uses the service. */
export const isLoopbackOrigin = (origin: string): boolean => isLoopbackHost(new URL(origin).hostname);

/** The URL of a service that listens there. One that listens on every interface is also reached on its own machine. */
export function originAt(address: string, port: number): string {
  if (address === "0.0.0.0" || address === "::") return `http://localhost:${port}`;
  return `http://${address.includes(":") ? `[${address}]` : address}:${port}`;
}
