import type { Permission, Plan, Quota, Role } from "@stoa/contract";
import type { Logger } from "pino";
import type { Config } from "./config/config.ts";
import type { FailPoints } from "./fail-points.ts";
import type { Links } from "./links.ts";
import type { Metrics } from "./telemetry/metrics.ts";
import type { Vault } from "./vault.ts";

/**
 * Everything that a function of a room depends on, as its first argument: a plain object, built in base.ts. A room adds what it
 * brings by `declare module` in its own file, so that this file imports no room.
 */
export interface Context {
  config: Config;
  now(): Date;
  /** A UUIDv7 of now(). */
  newId(): string;
  log: Logger;
  /** Counters and histograms of this process. */
  metrics: Metrics;
  vault: Vault;
  links: Links;
  /** Aborts with the reason "shutdown" when the process must end: calls to other services are given up. */
  shutdown: AbortSignal;
  /** null, except in tests of crashes. */
  failPoints: FailPoints | null;
  integrations: Integrations;
}

/** The services outside of Stoa: each integration adds its own. */
// biome-ignore lint/suspicious/noEmptyInterface: every integration adds to it
export interface Integrations {}

/** Where a request comes from. */
export interface RequestSource {
  ip: string;
  userAgent: string | null;
  requestId: string;
}

interface AccountFields {
  userId: string;
  role: Role;
  plan: Plan;
  /** The account's own numbers, which replace those of its plan. */
  quota: Quota[] | null;
}

export interface KeyCaller extends AccountFields {
  kind: "key";
  keyId: string;
  permissions: ReadonlySet<Permission>;
}

export interface SessionCaller extends AccountFields {
  kind: "session";
  sessionId: string;
  /** Whether a code of the second factor was given at sign-in. */
  secondFactor: boolean;
  authenticatedAt: Date;
}

export interface TokenCaller extends AccountFields {
  kind: "token";
  /** null: a client that acts for its owner (client credentials). */
  grantId: string | null;
  permissions: ReadonlySet<Permission>;
}

/** A browser of the storefront without an account. */
export interface Guest {
  kind: "guest";
  guestId: string;
}

/** A caller with an account, by key, session or token. */
export type Member = KeyCaller | SessionCaller | TokenCaller;
export type Caller = Member | Guest;

export const isMember = (caller: Caller): caller is Member => caller.kind !== "guest";

/** Who counts as one viewer. */
export const callerIdOf = (caller: Caller): string => (isMember(caller) ? caller.userId : caller.guestId);
