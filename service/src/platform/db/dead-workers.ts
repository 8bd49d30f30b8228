import type { Context } from "../../core/context.ts";
import { required } from "../../core/required.ts";
import { listPresentWorkers, type WorkerPresence } from "./presence.ts";

export type Presence = Pick<WorkerPresence, "key" | "sessions">;

export interface DeadWorkerOptions {
  /** Of this worker; undefined: it detects others in any case. */
  presence: Presence | undefined;
  /** A worker that only lost its connection has its lock back before this time. */
  deadAfterMs: number;
  /** After a restart of PostgreSQL all workers reconnect. For this time after its own session began anew, a worker counts none as dead. */
  reconnectGraceMs: number;
}

/** Finds workers that died, by their session locks. */
export class DeadWorkerDetector {
  readonly #ctx: Pick<Context, "pool" | "now">;
  readonly #options: DeadWorkerOptions;
  #absentSince = new Map<number, number>();
  /** The session of the own lock, and from when on that session may detect dead workers. */
  #presenceSince: { session: number; from: number };

  constructor(ctx: Pick<Context, "pool" | "now">, options: DeadWorkerOptions) {
    this.#ctx = ctx;
    this.#options = options;
    this.#presenceSince = { session: options.presence?.sessions ?? 0, from: Number.NEGATIVE_INFINITY };
  }

  /** Filters the keys of workers with leases to dead workers. Call it regularly with all of them. */
  async filterDead(leasing: number[]): Promise<number[]> {
    const { pool, now } = this.#ctx;
    const present = leasing.length > 0 ? await listPresentWorkers(pool, leasing) : new Set();
    const at = now().getTime();
    if (!this.#canDetectDeadWorkers(at)) {
      this.#absentSince.clear();
      return [];
    }
    const absent = leasing.filter((worker) => !present.has(worker));
    this.#absentSince = new Map(absent.map((worker) => [worker, this.#absentSince.get(worker) ?? at]));
    return absent.filter(
      (worker) =>
        at - required(this.#absentSince.get(worker), "since when a worker is absent") >=
        this.#options.deadAfterMs,
    );
  }

  /** A worker that lost its own session lock cannot detect dead workers. */
  #canDetectDeadWorkers(at: number): boolean {
    const { presence, reconnectGraceMs } = this.#options;
    if (!presence) return true;
    const { key, sessions } = presence;
    if (sessions !== this.#presenceSince.session)
      this.#presenceSince = { session: sessions, from: at + reconnectGraceMs };
    return key !== null && at >= this.#presenceSince.from;
  }
}
