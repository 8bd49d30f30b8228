const LOOPBACK_HOSTS = new Set(["127.0.0.1", "[::1]", "localhost"]);
const LOOPBACK_ADDRESSES = new Set(["127.0.0.1", "[::1]"]);

const isHttpTo = (uri: string, hosts: ReadonlySet<string>): boolean => {
  const url = URL.parse(uri);
  return url !== null && url.protocol === "http:" && hosts.has(url.hostname);
};

/** To an app on the user's own machine (RFC 8252). */
export const isLoopbackUri = (uri: string) => isHttpTo(uri, LOOPBACK_HOSTS);

/** By address. `localhost` is a name, which may lead elsewhere: RFC 8252 advises against it, and its port is not free here. */
export const isLoopbackAddressUri = (uri: string) => isHttpTo(uri, LOOPBACK_ADDRESSES);

/** The hosts of redirect URIs, each once, as people are shown them. */
export const listHosts = (uris: readonly string[]): string[] => [
  ...new Set(uris.map((uri) => new URL(uri).host)),
];

/** A host that stands in a Content-Security-Policy as it is: no IPv6 address, and nothing that ends the directive. */
const PLAIN_HOST = /^[a-z0-9.-]+$/;

/** As a source of the policy `form-action`; where the host cannot stand there, the scheme must do. */
export const toFormActionSource = (uri: URL): string =>
  PLAIN_HOST.test(uri.hostname) ? uri.origin : uri.protocol;
