import type { Permission, Plan, Quota, Role } from "@stoa/contract";
import type pg from "pg";
import type { Logger } from "pino";
import type { LiveRuns } from "./ai/live.ts";
import type { Kept } from "./catalogue/kept.ts";
import type { ViewBuffer } from "./catalogue/views.ts";
import type { Config } from "./config.ts";
import type { SkewedClock } from "./db/clock.ts";
import type { Connection, Database } from "./db/database.ts";
import type { DatabaseWatch } from "./db/database-watch.ts";
import type { Notices } from "./db/notices.ts";
import type { WorkerPresence } from "./db/presence.ts";
import type { RefusedWrites } from "./db/refused-writes.ts";
import type { RunNotices } from "./engine/run-notices.ts";
import type { EventFeed } from "./events/feed.ts";
import type { FailPoints } from "./fail-points.ts";
import type { Counters } from "./http/counters.ts";
import type { Guests } from "./http/guests.ts";
import type { IdempotencyKey } from "./http/idempotency.ts";
import type { Jobs } from "./jobs/jobs.ts";
import type { KeyCache } from "./keys/key-cache.ts";
import type { Links } from "./links.ts";
import type { AiProviders } from "./outside/ai-provider.ts";
import type { IdentityProviders } from "./outside/identity-provider.ts";
import type { Mail } from "./outside/mail.ts";
import type { RequestFakePage } from "./outside/payments.fake-pages.ts";
import type { Payments } from "./outside/payments.ts";
import type { Poster } from "./outside/post.ts";
import type { Storage } from "./outside/storage.ts";
import type { Taxes } from "./outside/taxes.ts";
import type { Figures } from "./telemetry.figures.ts";
import type { Vault } from "./vault.ts";

/** Everything that a verb depends on, as its first argument: a plain object, built in base.ts. */
export interface Context {
  config: Config;
  db: Database;
  /** For hot reads in plain SQL with named statements; everything else goes through db. */
  pool: pg.Pool;
  /** How to reach the database, for connections beside the pool. */
  connection: Connection;
  now(): Date;
  /** By how much the machine's clock differs from the database's, which now() tells. */
  clock: SkewedClock;
  /** A UUIDv7 of now(). */
  newId(): string;
  log: Logger;
  /** What is counted as it happens. */
  figures: Figures;
  vault: Vault;
  links: Links;
  guests: Guests;
  /** Of requests, for the rate limits. */
  counters: Counters;
  jobs: Jobs;
  /** What other processes change in the database. */
  notices: Notices;
  /** The session lock by which other processes see that this one lives. */
  presence: WorkerPresence;
  /** Since when the database has been there, as far as this process knows. */
  databaseWatch: DatabaseWatch;
  /** Writes that the database refused lately, for `/readyz`. */
  refusedWrites: RefusedWrites;
  /** Kept in memory by this process alone. */
  keyCache: KeyCache;
  /** What lists show to everybody. */
  kept: Kept;
  views: ViewBuffer;
  /** Who waits for runs of workflows. */
  runNotices: RunNotices;
  /** Who reads along as events happen. */
  feed: EventFeed;
  /** The prompts that this process runs at this moment. */
  live: LiveRuns;
  /** Aborts with the reason "shutdown" when the process must end: calls to the outside give up. */
  shutdown: AbortSignal;
  /** Of the request that this context serves; null: it has none, or no request is served. */
  idempotencyKey: IdempotencyKey | null;
  /** null, but in tests of crashes. */
  failPoints: FailPoints | null;
  outside: {
    payments: Payments;
    /** The pages of the test payment provider; null: there is none. */
    testPayments: RequestFakePage | null;
    taxes: Taxes;
    ai: AiProviders;
    identityProviders: IdentityProviders;
    mail: Mail;
    storage: Storage;
    poster: Poster;
    /** null when a user's URL may be called, else why not. */
    refusedUrl(url: string): string | null;
  };
}

/** Where a request comes from. */
export interface Source {
  ip: string;
  userAgent: string | null;
  requestId: string;
}

interface Known {
  userId: string;
  role: Role;
  plan: Plan;
  /** The account's own numbers in the place of its plan's. */
  quota: Quota[] | null;
}

export interface KeyCaller extends Known {
  kind: "key";
  keyId: string;
  permissions: ReadonlySet<Permission>;
}

export interface SessionCaller extends Known {
  kind: "session";
  sessionId: string;
  /** Whether a code of the second factor was given at sign-in. */
  secondFactor: boolean;
  authenticatedAt: Date;
}

export interface TokenCaller extends Known {
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

/** Somebody with an account, whichever way they came in. */
export type Member = KeyCaller | SessionCaller | TokenCaller;
export type Caller = Member | Guest;

export const isMember = (caller: Caller): caller is Member => caller.kind !== "guest";

/** Who counts as one viewer. */
export const viewerOf = (caller: Caller): string => (isMember(caller) ? caller.userId : caller.guestId);
