import { isIP, isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";

declare module "../context.ts" {
  interface Integrations {
    /** Returns the reason if the service must not call a user's URL, else null. */
    findUrlProblem(url: string): string | null;
  }
}

/** An entry of STOA_ALLOWED_TARGETS; port null: every port. A name allows every address that it resolves to. */
export type AllowedTarget = ({ name: string } | { network: Network }) & { port: number | null };
export type AllowedTargets = readonly AllowedTarget[];
type Network = [address: ipaddr.IPv4 | ipaddr.IPv6, prefixLength: number];

/** Users' URLs may reach public https targets and those that the operator allows. */
export interface EgressGuard {
  /** Private targets, reachable on any port and over plain HTTP. */
  allowed: AllowedTargets;
  /** The service's own listener, refused even if loopback is allowed. `0.0.0.0` and `::` mean every local address. */
  own: () => { addresses: string[]; port: number } | null;
  /** The public address of this service, possibly a load balancer; also refused. */
  publicUrl?: URL | null;
  /** Path prefixes on the service itself that remain reachable, such as `/dev/hooks/`. */
  ownPathsAllowed: readonly string[];
  resolve?: (host: string) => Promise<string[]>;
}

/** `host`: a lower-case name or a bare IP address. `mayBeOwn`: the service itself is a valid target. */
export interface Target {
  host: string;
  port: number;
  mayBeOwn: boolean;
}

const MAX_URL_LENGTH = 2048;
const PRIVATE_SUFFIXES = /\.(local|internal|localhost)$/;
const HOST_NAME = /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/;
/** Well-known ports of databases, container engines, chat and mail servers. */
const DENIED_PORTS = new Set([
  1433, 1521, 2049, 2375, 2376, 2379, 2380, 2525, 3306, 3389, 5060, 5061, 5432, 5900, 6000, 6379, 6665, 6666,
  6667, 6668, 6669, 6697, 9042, 9200, 9300, 10250, 11211, 27017,
]);
/** Azure's metadata and wire server: a public address that answers only inside Azure. */
const DENIED_ADDRESSES = new Set(["168.63.129.16"]);

/**
 * Parses comma-separated `host`, `host:port`, address, CIDR or `loopback` (127.0.0.0/8, ::1 and localhost). Throws an Error that names the
 * wrong entry.
 */
export function parseAllowedTargets(text: string): AllowedTargets {
  const entries = text.split(",").map((entry) => entry.trim());
  return entries.filter((entry) => entry !== "").flatMap(parseEntry);
}

function parseEntry(entry: string): AllowedTarget[] {
  if (isNetwork(entry)) return [{ network: ipaddr.parseCIDR(entry), port: null }];
  if (isIPv6(entry)) return [{ network: networkOf(entry), port: null }];
  const [, bracketed, name = "", digits] = /^(?:\[(.+)\]|([\w.-]+))(?::(\d{1,5}))?$/.exec(entry) ?? [];
  const host = bracketed ?? canonicalHost(name);
  const port = digits === undefined ? null : Number(digits);
  if (port === 0 || (port ?? 0) > 65535) throw badEntry(entry);
  if (host === "loopback") return loopback(port);
  if (isIP(host)) return [{ network: networkOf(host), port }];
  if (bracketed !== undefined || !HOST_NAME.test(host)) throw badEntry(entry);
  return [{ name: host, port }];
}

/** Four-part IPv4 only: ipaddr.js would read the shorthand `10/8` as 0.0.0.10/8. */
const isNetwork = (entry: string) =>
  ipaddr.IPv4.isValidCIDRFourPartDecimal(entry) || (entry.includes(":") && ipaddr.IPv6.isValidCIDR(entry));

/** Normalized like the parsed URLs that it is compared with: 0x7f.1 becomes 127.0.0.1. */
const canonicalHost = (host: string) => (host === "" ? "" : (parseUrl(`http://${host}/`)?.hostname ?? ""));

function loopback(port: number | null): AllowedTarget[] {
  return [
    { network: ipaddr.parseCIDR("127.0.0.0/8"), port },
    { network: networkOf("::1"), port },
    { name: "localhost", port },
  ];
}

function networkOf(address: string): Network {
  const parsed = ipaddr.process(address);
  return [parsed, parsed.kind() === "ipv4" ? 32 : 128];
}

const badEntry = (entry: string) =>
  new Error(`STOA_ALLOWED_TARGETS: "${entry}" is not a host, host:port, address, CIDR or "loopback"`);

/** Normalizes IPv4 literals to dotted form and removes a trailing dot. */
export function parseUrl(text: string): URL | null {
  const url = URL.parse(text);
  if (url?.hostname.endsWith(".")) url.hostname = url.hostname.slice(0, -1);
  return url;
}

/**
 * Returns the reason why the URL must not be saved, such as "points to a private address". Does not use DNS: resolved addresses are
 * checked on connection.
 */
export function findUrlProblem(guard: EgressGuard, text: string): string | null {
  if (text.length > MAX_URL_LENGTH) return `is longer than ${MAX_URL_LENGTH} characters`;
  const url = parseUrl(text);
  if (!url || !/^https?:$/.test(url.protocol)) return "is not a valid https address";
  if (url.username !== "" || url.password !== "") return "must not contain a user name or password";
  const target = toTarget(guard, url);
  if (!target.mayBeOwn && isPublicName(guard, target)) return "points to this service itself";
  const address = knownAddress(target.host);
  const refusal =
    address === null ? findNameProblem(guard, target) : findAddressProblem(guard, target, address);
  if (refusal !== null || isAllowed(guard, target, address)) return refusal;
  if (url.protocol !== "https:") return "must use https";
  if (address !== null && isIPv6(address)) return "must have an IPv4 address";
  return isPublicPort(target.port) ? null : "uses a port that is not allowed";
}

export function toTarget(guard: EgressGuard, url: URL): Target {
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: Number(url.port || (url.protocol === "https:" ? 443 : 80)),
    mayBeOwn: guard.ownPathsAllowed.some((prefix) => url.pathname.startsWith(prefix)),
  };
}

function isPublicName(guard: EgressGuard, target: Target): boolean {
  if (!guard.publicUrl) return false;
  const own = toTarget(guard, guard.publicUrl);
  return own.host === target.host && own.port === target.port;
}

/** localhost and IP literals need no DNS. */
const knownAddress = (host: string) => (host === "localhost" ? "127.0.0.1" : isIP(host) ? host : null);

function findNameProblem(guard: EgressGuard, target: Target): string | null {
  if (isAllowed(guard, target, null)) return null;
  const isFullName = target.host.includes(".") && HOST_NAME.test(target.host);
  return isFullName && !PRIVATE_SUFFIXES.test(target.host) ? null : "must have a full public host name";
}

/** Returns the reason why the service must not connect to the address; the reason does not reveal the address. */
export function findAddressProblem(guard: EgressGuard, target: Target, address: string): string | null {
  if (!ipaddr.isValid(address)) return "has no valid address";
  if (!target.mayBeOwn && isOwn(guard, address, target.port)) return "points to this service itself";
  return isAllowed(guard, target, address) || isPublic(address) ? null : "points to a private address";
}

function isOwn(guard: EgressGuard, address: string, port: number): boolean {
  const own = guard.own();
  if (own?.port !== port) return false;
  const listening = own.addresses.map(canonicalAddress);
  if (listening.includes(canonicalAddress(address))) return true;
  return listening.some((address) => address === "0.0.0.0" || address === "::") && isLocal(address);
}

function isLocal(address: string): boolean {
  const range = ipaddr.process(address).range();
  const interfaces = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const isInterface = interfaces.some(
    (local) => canonicalAddress(local.address) === canonicalAddress(address),
  );
  return range === "loopback" || range === "unspecified" || isInterface;
}

const canonicalAddress = (address: string) => ipaddr.process(address).toString();

function isAllowed(guard: EgressGuard, target: Target, address: string | null): boolean {
  return guard.allowed.some((entry) => {
    if (entry.port !== null && entry.port !== target.port) return false;
    if ("name" in entry) return entry.name === target.host;
    return address !== null && isWithin(entry.network, address);
  });
}

function isWithin(network: Network, address: string): boolean {
  const parsed = ipaddr.process(address);
  return parsed.kind() === network[0].kind() && parsed.match(network);
}

/** Unicast excludes private, loopback, link-local, shared, multicast and test ranges, and IPv6 that embeds IPv4. */
const isPublic = (address: string) =>
  ipaddr.process(address).range() === "unicast" && !DENIED_ADDRESSES.has(canonicalAddress(address));

const isPublicPort = (port: number) => port === 443 || (port >= 1024 && !DENIED_PORTS.has(port));
