import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import type { Logger } from "pino";
import { type Connection, oneClient } from "./database.ts";

const TRUSTED_MS = 1_000;
const PROVE_AFTER_MS = 400;
const ANSWER_WITHIN_MS = 2_000;
const TRY_AGAIN_MS = 1_000;

/** Memory that is kept of the database, and forgotten as it is told. */
export interface Memory {
  /** What to do on a notice, by channel; it gets the notice's payload. */
  on: Record<string, (payload: string) => void>;
  /** Notices may have been missed: nothing that is kept can be trusted. */
  forgetAll(): void;
}

/**
 * Hears what triggers NOTIFY, over a connection of its own, so that every process forgets what another one has changed.
 * PostgreSQL tells in the order of commits, and before it answers a later question on that connection. So one answer
 * proves that everything committed before the question was told; without a fresh one, silence proves nothing.
 */
export class Notices {
  readonly #connection: Connection;
  readonly #log: Logger;
  readonly #clock: () => number;
  readonly #memories: Memory[] = [];
  readonly #closing = new AbortController();
  #client: pg.Client | null = null;
  #provenAt = Number.NEGATIVE_INFINITY;
  #proving: Promise<void> = Promise.resolve();
  #nextProof: Promise<void> | null = null;
  #listening: Promise<void> = Promise.resolve();

  constructor(connection: Connection, log: Logger, clock = () => performance.now()) {
    this.#connection = connection;
    this.#log = log;
    this.#clock = clock;
  }

  /** To be called before listen(). */
  keep(memory: Memory): void {
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

  /** Whether everything was told that was committed over a second ago: only then may memory be used. */
  areCurrent(): boolean {
    const age = this.#clock() - this.#provenAt;
    // Asked for by whoever needs it: an idle process asks nothing.
    if (this.#client && age > PROVE_AFTER_MS && !this.#nextProof) void this.caughtUp();
    return age <= TRUSTED_MS;
  }

  /** Resolves when everything that was committed before this call has been told, or all is forgotten. */
  caughtUp(): Promise<void> {
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
      await this.#listenOnce().catch((error) => {
        if (!signal.aborted) this.#log.warn({ err: error }, "no notices are heard, so nothing is cached");
      });
      await sleep(TRY_AGAIN_MS, null, { signal, ref: false }).catch(() => {});
    }
  }

  /** Until the connection is lost. */
  async #listenOnce(): Promise<void> {
    const client = oneClient(this.#connection, {
      application_name: "stoa notices",
      keepAlive: true,
      query_timeout: ANSWER_WITHIN_MS,
    });
    client.on("error", () => {}); // told by `gone`
    client.on("notification", ({ channel, payload = "" }) => this.#tell(channel, payload));
    const gone = once(client, "end", { signal: this.#closing.signal });
    try {
      await Promise.race([this.#begin(client), gone]);
      await gone;
    } finally {
      this.#lose();
      await client.end();
    }
  }

  async #begin(client: pg.Client): Promise<void> {
    await client.connect();
    const channels = new Set(this.#memories.flatMap(({ on }) => Object.keys(on)));
    for (const channel of channels) await client.query(`listen ${client.escapeIdentifier(channel)}`);
    this.#client = client;
    await this.caughtUp();
  }

  #tell(channel: string, payload: string): void {
    for (const { on } of this.#memories) on[channel]?.(payload);
  }

  #lose(): void {
    this.#client = null;
    this.#provenAt = Number.NEGATIVE_INFINITY;
    for (const memory of this.#memories) memory.forgetAll();
  }
}
