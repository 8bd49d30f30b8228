const LOOPBACK_HOSTS = new Set(["127.0.0.1", "[::1]", "localhost"]);
const LOOPBACK_ADDRESSES = new Set(["127.0.0.1", "[::1]"]);

const isHttpTo = (uri: string, hosts: ReadonlySet<string>): boolean => {
  const url = URL.parse(uri);
  return url !== null && url.protocol === "http:" && hosts.has(url.hostname);
};

/** An app on the user's own machine (RFC 8252). */
export const isLoopbackUri = (uri: string) => isHttpTo(uri, LOOPBACK_HOSTS);

/** By IP address. The name `localhost` can resolve elsewhere, so its port must match exactly (RFC 8252). */
export const isLoopbackAddressUri = (uri: string) => isHttpTo(uri, LOOPBACK_ADDRESSES);

export const listHosts = (uris: readonly string[]): string[] => [
  ...new Set(uris.map((uri) => new URL(uri).host)),
];

/** Safe in a Content-Security-Policy: no IPv6 address and no character that ends the directive. */
const PLAIN_HOST = /^[a-z0-9.-]+$/;

/** The scheme alone where the host is not safe in the policy. */
export const toFormActionSource = (uri: URL): string =>
  PLAIN_HOST.test(uri.hostname) ? uri.origin : uri.protocol;
