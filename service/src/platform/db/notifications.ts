import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { type Connection, createClient, createDirectClient, type DatabaseClient } from "./database.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** Notifications of what other processes change in the database. */
    notifications: Notifications;
  }
}

/** Carries the proof that what is sent is received. */
export const PROOF_CHANNEL = "stoa_proof";
const TRUSTED_MS = 1_000;
const PROVE_AFTER_MS = 400;
const RESPONSE_TIMEOUT_MS = 2_000;
const RETRY_MS = 1_000;
/** A line through a pooler stays one until settings change. */
const UNPROVEN_RETRY_MS = 30_000;

/** Memory that is kept of the database, and forgotten as it is told. */
export interface NotifiedCache {
  /** What to do on a notice, by channel; it gets the notice's payload. */
  on: Record<string, (payload: string) => void>;
  /** Notices may have been missed: nothing that is kept can be trusted. */
  clear(): void;
}

/** LISTEN does not work on this connection: a notification that was sent did not arrive. */
class NotificationLost extends Error {}

/**
 * Connects and listens, and proves that notifications arrive: another connection sends a nonce while this one is idle. Behind
 * a connection pooler in transaction mode LISTEN stays with a server connection that this one is not connected to while idle.
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
  // pg settles no connect() that is ended meanwhile.
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

/** Listens on the channels, and waits for the nonce. */
async function listen(
  connection: Connection,
  client: DatabaseClient,
  channels: string[],
  { nonce, arrived }: ListenProof,
): Promise<void> {
  await client.connect();
  for (const channel of [PROOF_CHANNEL, ...channels])
    await client.query(`listen ${client.escapeIdentifier(channel)}`);
  client.once("end", () => arrived.reject(new Error("Connection terminated")));
  await sendProof(connection, nonce);
  setTimeout(
    () => arrived.reject(new NotificationLost(explainLostNotification(connection, client))),
    RESPONSE_TIMEOUT_MS,
  ).unref();
  await arrived.promise;
}

/** By the way that all writes go, which must lead to the same database. */
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
 * Hears what triggers NOTIFY, over a connection of its own, so that every process forgets what another one has changed.
 * PostgreSQL tells in the order of commits, and before it answers a later question on that connection. So on a line that is
 * proven one answer proves that everything committed before the question was told; without a fresh one, silence proves nothing.
 */
export class Notifications {
  readonly #connection: Connection;
  readonly #log: Logger;
  readonly #clock: () => number;
  readonly #memories: NotifiedCache[] = [];
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

  /** To be called before listen(). */
  register(memory: NotifiedCache): void {
    this.#memories.push(memory);
  }

  /** Begins to listen, and begins anew whenever the connection is lost. */
  listen(): void {
    this.#listening = this.#keepListening();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#listening;
  }

  /** Why nothing may be cached; null: notifications arrive, or it is not known yet. */
  get problem(): string | null {
    return this.#problem;
  }

  /** Whether everything was told that was committed over a second ago: only then may memory be used. */
  areCurrent(): boolean {
    const age = this.#clock() - this.#provenAt;
    // Asked for by whoever needs it: an idle process asks nothing.
    if (this.#client && age > PROVE_AFTER_MS && !this.#nextProof) void this.catchUp();
    return age <= TRUSTED_MS;
  }

  /** Resolves when everything that was committed before this call has been told, or all is forgotten. */
  catchUp(): Promise<void> {
    // One question at a time; whoever comes while it is asked shares the next.
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
    const askedAt = this.#clock();
    try {
      await client.query("select 1");
      if (this.#client === client) this.#provenAt = askedAt;
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

  /** Answers whether the line was open, and heard nothing. */
  #note(error: Error): boolean {
    const isUnproven = error instanceof NotificationLost;
    const problem = isUnproven ? error.message : "the connection that listens is lost";
    if (!isUnproven) this.#log.warn({ err: error }, "no notifications arrive, so nothing is cached");
    else if (problem !== this.#problem) this.#log.warn(`Nothing is cached: ${problem}`);
    this.#problem = problem;
    return isUnproven;
  }

  /** Until the connection is lost. */
  async #listenOnce(): Promise<void> {
    const { signal } = this.#closing;
    const channels = new Set(this.#memories.flatMap(({ on }) => Object.keys(on)));
    const client = await openListenConnection(
      this.#connection,
      [...channels],
      (channel, payload) => this.#tell(channel, payload),
      signal,
    );
    const gone = once(client, "end", { signal });
    try {
      this.#client = client;
      this.#problem = null;
      await Promise.race([this.catchUp(), gone]);
      await gone;
    } finally {
      this.#lose();
      await client.end();
    }
  }

  #tell(channel: string, payload: string): void {
    for (const { on } of this.#memories) on[channel]?.(payload);
  }

  #lose(): void {
    this.#client = null;
    this.#provenAt = Number.NEGATIVE_INFINITY;
    for (const memory of this.#memories) memory.clear();
  }
}
