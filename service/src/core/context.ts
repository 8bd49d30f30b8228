import type { Permission, Plan, Quota, Role } from "@stoa/contract";
import type { Logger } from "pino";
import type { Config } from "./config/config.ts";
import type { FailPoints } from "./fail-points.ts";
import type { Links } from "./links.ts";
import type { Metrics } from "./telemetry/metrics.ts";
import type { Vault } from "./vault.ts";

/**
 * The first argument of every function of a room, built in base.ts. A room adds its members by `declare module` in its own file, so that
 * this file imports no room.
 */
export interface Context {
  config: Config;
  now(): Date;
  newId(): string;
  log: Logger;
  metrics: Metrics;
  vault: Vault;
  links: Links;
  /** Aborts calls to other services when the process must end. */
  shutdown: AbortSignal;
  /** null except in tests of crashes. */
  failPoints: FailPoints | null;
  integrations: Integrations;
}

// biome-ignore lint/suspicious/noEmptyInterface: every integration adds to it
export interface Integrations {}

export interface RequestSource {
  ip: string;
  userAgent: string | null;
  requestId: string;
}

interface AccountFields {
  userId: string;
  role: Role;
  plan: Plan;
  /** The account's own quotas, which replace those of its plan. */
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
  /** Whether the sign-in used a second factor. */
  secondFactor: boolean;
  authenticatedAt: Date;
  view?: ViewState;
}

/**
 * An administrator's session that views another account. While the view lasts, the caller's account is the viewed one;
 * after it, the administrator's own. Either way, the session changes nothing until the view is ended.
 */
export interface ViewState {
  administrator: SessionCaller;
  viewedId: string;
  expiresAt: Date;
  isOver: boolean;
}

export interface TokenCaller extends AccountFields {
  kind: "token";
  /** null: client credentials, where the client acts for its owner. */
  grantId: string | null;
  permissions: ReadonlySet<Permission>;
}

export interface Guest {
  kind: "guest";
  guestId: string;
}

export type Member = KeyCaller | SessionCaller | TokenCaller;
export type Caller = Member | Guest;

export const isMember = (caller: Caller): caller is Member => caller.kind !== "guest";

/** undefined: the caller acts as itself. */
export const viewOf = (caller: Caller): ViewState | undefined =>
  caller.kind === "session" ? caller.view : undefined;

/** Who answers for a request: quotas, logs and counts are the administrator's, not those of a viewed account. */
export const responsibleCallerOf = <C extends Caller>(caller: C): C | SessionCaller =>
  caller.kind === "session" && caller.view ? caller.view.administrator : caller;

export const callerIdOf = (caller: Caller): string => (isMember(caller) ? caller.userId : caller.guestId);
