import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../../core/context.ts";
import { listPresent, type WorkerPresence } from "../../platform/db/presence.ts";
import { attemptDelivery, type Made, unpostedAttempt } from "./attempt.ts";
import {
  type Claimed,
  claimDeliveries,
  findWork,
  type Lease,
  listLeasingWorkers,
  mendLanes,
  reapDeliveries,
  releaseDelivery,
} from "./delivery-queries.ts";
import { fanOut, type Turn } from "./fan-out.ts";
import { outcomeOf } from "./outcome.ts";
import { Recorder } from "./recorder.ts";

/** A part of a worker: what is slow there holds up nobody elsewhere. */
interface Part {
  isSlow: boolean;
  slots: number;
  /**
   * So many are posted, and then more as soon as some are recorded, or after a moment: what is answered at once is not outrun, so that
   * whoever is killed has little to repeat.
   */
  atOnce: number;
  inFlight: Set<Promise<void>>;
}

const newParts = (): Record<"quick" | "slow", Part> => ({
  quick: { isSlow: false, slots: 192, atOnce: 16, inFlight: new Set() },
  /** For endpoints that have been slow, until they are quick again. */
  slow: { isSlow: true, slots: 64, atOnce: 4, inFlight: new Set() },
});

/** Of the slots that are free one account gets no more: however many begin to hang at once, some are left for the others. */
const SHARE_OF_FREE = 1 / 4;
const MOMENT_MS = 10;
/** More than a post and its record take together: whoever is silent for longer is dead, or too late. */
const LEASE_MS = 60_000;
/** How long an event may wait for an idle worker. */
const LOOK_EVERY_MS = 100;
const REAP_EVERY_MS = 1_000;
/** A worker without its session lock for so long is dead; one that only lost its connection is back sooner. */
const DEAD_AFTER_MS = 1_000;
/** After a restart of PostgreSQL all workers reconnect: for so long after it did itself, a worker counts no other one as absent. */
const JUDGES_AFTER_MS = 3_000;
const MEND_EVERY_MS = 30_000;

interface CourierOptions {
  /** Draws jitter from [0, 1). */
  random?: () => number;
  leaseMs?: number;
  /** Without it a lease of a dead worker ends only when it runs out. */
  presence?: Presence;
}

type Presence = Pick<WorkerPresence, "key" | "sessions">;

/**
 * A worker of deliveries; there may be any number. It hands events to the endpoints that want them, leases what is due, posts it, and
 * records how that went. What it holds when it is killed is due again as soon as its session lock is gone.
 */
export class Courier {
  readonly #ctx: Context;
  readonly #random: () => number;
  readonly #leaseMs: number;
  readonly #presence: Presence | undefined;
  /** Workers without their session lock, and since when. */
  #absentSince = new Map<number, number>();
  /** The session of its own lock in which it judges who is absent, and from when on. */
  #judging = { session: 0, from: Number.NEGATIVE_INFINITY };
  readonly #recorder: Recorder;
  readonly #parts = newParts();
  readonly #turn: Turn = { after: null };
  readonly #stopping = new AbortController();
  /** Ends the pause of whoever hands out: there may be room again. */
  #bell = new AbortController();
  #hasRung = false;
  #working: Promise<unknown> = Promise.resolve();

  constructor(ctx: Context, { random = Math.random, leaseMs = LEASE_MS, presence }: CourierOptions = {}) {
    this.#ctx = ctx;
    this.#presence = presence;
    this.#judging.session = presence?.sessions ?? 0;
    this.#random = random;
    this.#leaseMs = leaseMs;
    this.#recorder = new Recorder(ctx, () => this.#ring());
  }

  start(): void {
    this.#working = Promise.all([
      this.#repeatedly(
        () => this.round(),
        (isBusy) => this.#untilRungFor(isBusy ? MOMENT_MS : LOOK_EVERY_MS),
      ),
      this.#repeatedly(
        () => this.reap(),
        () => this.#pause(REAP_EVERY_MS),
      ),
      this.#repeatedly(
        () => this.#mend(),
        () => this.#pause(MEND_EVERY_MS),
      ),
    ]);
  }

  /** Begins nothing new; resolves when what runs has ended and is recorded. What the context's shutdown breaks off is given back. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#working;
    await this.idle();
  }

  /** Resolves when nothing is in flight and all is recorded. */
  async idle(): Promise<void> {
    await Promise.all(Object.values(this.#parts).flatMap(({ inFlight }) => [...inFlight]));
    await this.#recorder.flush();
  }

  /** One look at what there is to do; answers whether anything was begun. */
  async round(): Promise<boolean> {
    const ctx = this.#ctx;
    const { hasEvents, hasQuick, hasSlow } = await findWork(ctx.pool, ctx.now());
    const told = hasEvents ? await fanOut(ctx, this.#turn) : 0;
    const { quick, slow } = this.#parts;
    const begun =
      (hasQuick || told > 0 ? await this.#beginSome(quick) : 0) + (hasSlow ? await this.#beginSome(slow) : 0);
    return told + begun > 0;
  }

  /** Takes back what dead workers held; what killed several of them counts as attempted. */
  async reap(): Promise<void> {
    const poison = await reapDeliveries(this.#ctx.pool, this.#lease(), await this.#findDead());
    const result = { response: null, problem: "worker_lost" } as const;
    for (const delivery of poison) this.#record(delivery, { attempt: unpostedAttempt(this.#ctx), result });
  }

  async #findDead(): Promise<number[]> {
    const { pool, now } = this.#ctx;
    const leasing = await listLeasingWorkers(pool);
    const present = leasing.length > 0 ? await listPresent(pool, leasing) : new Set();
    const at = now().getTime();
    if (!this.#mayJudge(at)) {
      this.#absentSince.clear();
      return [];
    }
    const absent = leasing.filter((worker) => !present.has(worker));
    this.#absentSince = new Map(absent.map((worker) => [worker, this.#absentSince.get(worker) ?? at]));
    return absent.filter((worker) => at - this.#absentSince.get(worker)! >= DEAD_AFTER_MS);
  }

  /** Not without a session lock of its own, where it could have one, and not soon after that came back. */
  #mayJudge(at: number): boolean {
    if (!this.#presence) return true;
    const { key, sessions } = this.#presence;
    if (sessions !== this.#judging.session) this.#judging = { session: sessions, from: at + JUDGES_AFTER_MS };
    return key !== null && at >= this.#judging.from;
  }

  async #mend(): Promise<void> {
    const mended = await mendLanes(this.#ctx.db, this.#ctx.now());
    if (mended > 0) this.#ctx.log.warn({ lanes: mended }, "webhook lanes slept past their deliveries");
  }

  #lease(): Lease {
    const now = this.#ctx.now();
    const until = new Date(now.getTime() + this.#leaseMs);
    return { now, token: this.#ctx.newId(), until, worker: this.#presence?.key ?? null };
  }

  /** Answers how many. */
  async #beginSome(part: Part): Promise<number> {
    const free = part.slots - part.inFlight.size;
    if (free === 0) return 0;
    const wish = {
      isSlow: part.isSlow,
      most: Math.min(free, part.atOnce),
      share: Math.ceil(free * SHARE_OF_FREE),
    };
    const claimed = await claimDeliveries(this.#ctx.pool, this.#lease(), wish);
    for (const delivery of claimed) this.#begin(delivery, part.inFlight);
    return claimed.length;
  }

  #begin(delivery: Claimed, inFlight: Set<Promise<void>>): void {
    const attempt = this.#attempt(delivery)
      .catch((error) =>
        this.#ctx.log.error({ delivery: delivery.id, err: error }, "a delivery was not attempted"),
      )
      .finally(() => inFlight.delete(attempt));
    inFlight.add(attempt);
  }

  async #attempt(delivery: Claimed): Promise<void> {
    const made = await attemptDelivery(this.#ctx, delivery);
    if (made.result.problem === "shutdown") await releaseDelivery(this.#ctx.pool, delivery, this.#ctx.now());
    else this.#record(delivery, made);
  }

  #record(delivery: Claimed, { attempt, result }: Made): void {
    const outcome = outcomeOf(delivery, result, attempt.endedAt, this.#random);
    this.#recorder.add({ delivery, attempt, outcome });
  }

  /** `pause` is told what the work answered; null: it failed. */
  async #repeatedly<Answer>(
    work: () => Promise<Answer>,
    pause: (answer: Answer | null) => Promise<void>,
  ): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const answer = await work().catch((error) => {
        this.#ctx.log.warn({ err: error }, "a round of deliveries failed; the next one tries again");
        return null;
      });
      await pause(answer);
    }
  }

  #pause = (ms: number, ...until: AbortSignal[]): Promise<void> =>
    sleep(ms, undefined, { signal: AbortSignal.any([this.#stopping.signal, ...until]) }).catch(() => {});

  #ring(): void {
    this.#hasRung = true;
    this.#bell.abort();
  }

  async #untilRungFor(ms: number): Promise<void> {
    if (!this.#hasRung) await this.#pause(ms, this.#bell.signal);
    this.#hasRung = false;
    if (this.#bell.signal.aborted) this.#bell = new AbortController();
  }
}
