import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { type Connection, createClient, createDirectClient, type DatabaseClient } from "./database.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** Notifications of changes in the database by other processes. */
    notifications: Notifications;
  }
}

/** The channel of the test notification. */
export const PROOF_CHANNEL = "stoa_proof";
const TRUSTED_MS = 1_000;
const PROVE_AFTER_MS = 400;
const RESPONSE_TIMEOUT_MS = 2_000;
const RETRY_MS = 1_000;
/** A connection through a pooler fails the test until the settings change. */
const UNPROVEN_RETRY_MS = 30_000;

/** A cache of database rows that notifications invalidate. */
export interface NotifiedCache {
  /** Handlers by channel; the argument is the payload. */
  on: Record<string, (payload: string) => void>;
  /** Notifications may have been missed: the cache must drop everything. */
  clear(): void;
}

/** LISTEN does not work on this connection: the test notification did not arrive. */
class NotificationLost extends Error {}

/**
 * Opens a connection that listens, and tests it: another connection sends a nonce while this one is idle. Behind a
 * pooler in transaction mode, LISTEN stays with a server connection, which an idle client does not have.
 */
export async function openListenConnection(
  connection: Connection,
  channels: string[],
  receive: (channel: string, payload: string) => void,
  signal?: AbortSignal,
): Promise<DatabaseClient> {
  const client = createDirectClient(connection, {
    application_name: "stoa notices",
    keepAlive: true,
    query_timeout: RESPONSE_TIMEOUT_MS,
  });
  client.on("error", () => {}); // "end" follows
  // pg never settles a connect() whose client is ended meanwhile.
  const leave = () => {
    arrived.reject(new Error("Connection terminated"));
    void client.end().catch(() => {});
  };
  signal?.addEventListener("abort", leave);
  const nonce = randomUUID();
  const arrived = Promise.withResolvers<void>();
  client.on("notification", ({ channel, payload = "" }) => {
    if (channel !== PROOF_CHANNEL) return receive(channel, payload);
    if (payload === nonce) arrived.resolve();
  });
  try {
    await Promise.race([listen(connection, client, channels, { nonce, arrived }), arrived.promise]);
    return client;
  } catch (error) {
    leave();
    throw error;
  } finally {
    signal?.removeEventListener("abort", leave);
  }
}

interface ListenProof {
  nonce: string;
  arrived: PromiseWithResolvers<void>;
}

/** Listens on the channels and waits for the nonce. */
async function listen(
  connection: Connection,
  client: DatabaseClient,
  channels: string[],
  { nonce, arrived }: ListenProof,
): Promise<void> {
  await client.connect();
  const listens = [PROOF_CHANNEL, ...channels].map((name) => `listen ${client.escapeIdentifier(name)}`);
  await client.query(listens.join("; "));
  client.once("end", () => arrived.reject(new Error("Connection terminated")));
  await sendProof(connection, nonce);
  setTimeout(
    () => arrived.reject(new NotificationLost(explainLostNotification(connection, client))),
    RESPONSE_TIMEOUT_MS,
  ).unref();
  await arrived.promise;
}

/** Uses the path of all writes, which must lead to the same database. */
async function sendProof(connection: Connection, nonce: string): Promise<void> {
  const sender = createClient(connection, {
    application_name: "stoa notices",
    query_timeout: RESPONSE_TIMEOUT_MS,
  });
  sender.on("error", () => {}); // the query in hand reports it
  try {
    await sender.connect();
    await sender.query("select pg_notify($1, $2)", [PROOF_CHANNEL, nonce]);
  } finally {
    await sender.end();
  }
}

function explainLostNotification({ direct }: Connection, { isPooled }: DatabaseClient): string {
  const setting = direct === undefined ? "DATABASE_URL" : "DATABASE_DIRECT_URL";
  if (isPooled)
    return `${setting} leads through a connection pooler that shares its connections, so that LISTEN receives nothing: set DATABASE_DIRECT_URL to the address of PostgreSQL itself`;
  return direct === undefined
    ? "PostgreSQL did not deliver a notification in time"
    : "DATABASE_DIRECT_URL leads to another database than DATABASE_URL: a notification that was sent there did not arrive";
}

/**
 * Listens on a dedicated connection, so that processes drop what others have changed. PostgreSQL delivers notifications
 * in commit order, and before the answer to a later query on that connection. So the answer to a probe proves that all
 * earlier commits were delivered; silence proves nothing.
 */
export class Notifications {
  readonly #connection: Connection;
  readonly #log: Logger;
  readonly #clock: () => number;
  readonly #caches: NotifiedCache[] = [];
  readonly #closing = new AbortController();
  #client: DatabaseClient | null = null;
  #provenAt = Number.NEGATIVE_INFINITY;
  #proving: Promise<void> = Promise.resolve();
  #nextProof: Promise<void> | null = null;
  #listening: Promise<void> = Promise.resolve();
  #problem: string | null = null;

  constructor(connection: Connection, log: Logger, clock = () => performance.now()) {
    this.#connection = connection;
    this.#log = log;
    this.#clock = clock;
  }

  /** Call it before listen(). */
  register(cache: NotifiedCache): void {
    this.#caches.push(cache);
  }

  /** Listens, and reconnects whenever the connection breaks. */
  listen(): void {
    this.#listening = this.#keepListening();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#listening;
  }

  /** Why nothing may be cached; null: notifications arrive, or the test is still running. */
  get problem(): string | null {
    return this.#problem;
  }

  /** Whether all notifications of commits over a second ago have arrived. Only then may caches be used. */
  areCurrent(): boolean {
    const age = this.#clock() - this.#provenAt;
    // Callers trigger the probe, so that an idle process sends none.
    if (this.#client && age > PROVE_AFTER_MS && !this.#nextProof) void this.catchUp();
    return age <= TRUSTED_MS;
  }

  /** Resolves when all notifications of earlier commits have arrived, or all caches are cleared. */
  catchUp(): Promise<void> {
    // One probe at a time; callers during a probe share the next.
    this.#nextProof ??= this.#proving.then(() => {
      this.#nextProof = null;
      this.#proving = this.#prove();
      return this.#proving;
    });
    return this.#nextProof;
  }

  async #prove(): Promise<void> {
    const client = this.#client;
    if (!client) return;
    const sentAt = this.#clock();
    try {
      await client.query("select 1");
      if (this.#client === client) this.#provenAt = sentAt;
    } catch {
      this.#lose();
      void client.end();
    }
  }

  async #keepListening(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const isUnproven = await this.#listenOnce().then(
        () => false,
        (error) => !signal.aborted && this.#note(error),
      );
      const pause = isUnproven ? UNPROVEN_RETRY_MS : RETRY_MS;
      await sleep(pause, null, { signal, ref: false }).catch(() => {});
    }
  }

  /** Returns whether the connection was open, but received nothing. */
  #note(error: Error): boolean {
    const isUnproven = error instanceof NotificationLost;
    const problem = isUnproven ? error.message : "the connection that listens is lost";
    if (!isUnproven) this.#log.warn({ err: error }, "no notifications arrive, so nothing is cached");
    else if (problem !== this.#problem) this.#log.warn(`Nothing is cached: ${problem}`);
    this.#problem = problem;
    return isUnproven;
  }

  /** Returns or throws when the connection breaks. */
  async #listenOnce(): Promise<void> {
    const { signal } = this.#closing;
    const channels = new Set(this.#caches.flatMap(({ on }) => Object.keys(on)));
    const client = await openListenConnection(
      this.#connection,
      [...channels],
      (channel, payload) => this.#dispatch(channel, payload),
      signal,
    );
    const ended = once(client, "end", { signal });
    try {
      this.#client = client;
      this.#problem = null;
      await Promise.race([this.catchUp(), ended]);
      await ended;
    } finally {
      this.#lose();
      await client.end();
    }
  }

  #dispatch(channel: string, payload: string): void {
    for (const { on } of this.#caches) on[channel]?.(payload);
  }

  #lose(): void {
    this.#client = null;
    this.#provenAt = Number.NEGATIVE_INFINITY;
    for (const cache of this.#caches) cache.clear();
  }
}
