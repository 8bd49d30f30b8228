import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../../core/context.ts";
import { DeadWorkerDetector, type Presence } from "../../platform/db/dead-workers.ts";
import { attemptDelivery, createUnsentAttempt, type PostedAttempt } from "./attempt.ts";
import { AttemptRecorder } from "./attempt-recorder.ts";
import { toAttemptResult } from "./attempt-result.ts";
import { type FanOutCursor, recordCreateAndClaim } from "./create-deliveries.ts";
import {
  type ClaimedDelivery,
  type ClaimLimits,
  claimDeliveries,
  type Lease,
  listLeasingWorkers,
  type RecordedAttempt,
  reclaimDeliveries,
  releaseDelivery,
  repairQueues,
} from "./delivery-queries.ts";
import { SecretCache } from "./secrets.ts";

/** Two pools, so that slow endpoints do not use all capacity. */
interface AttemptPool {
  capacity: number;
  /** Attempts that the pool starts before it waits for results: few, so that a killed worker repeats few. */
  batchSize: number;
  /** Until their results are recorded: a worker whose database is slow claims no more than a killed one may repeat. */
  inFlight: Map<ClaimedDelivery, Promise<void>>;
}

const createPools = (): Record<"quick" | "slow", AttemptPool> => ({
  quick: { capacity: 192, batchSize: 64, inFlight: new Map() },
  /** For endpoints that answered slowly, until they answer quickly again. */
  slow: { capacity: 64, batchSize: 4, inFlight: new Map() },
});

/** Share of the free capacity for one account, so that its hanging endpoints leave some for others. */
const MAX_SHARE_PER_ACCOUNT = 1 / 4;
/** Share of the free capacity for one batch: the shares of accounts are those of its beginning. */
const MAX_SHARE_PER_BATCH = 1 / 2;
/** While deliveries are due, so that none of them waits for a longer interval. */
const DELIVERING_POLL_INTERVAL_MS = 1;
/** While events arrive that no endpoint gets: each poll takes CPU time from the requests that publish them. */
const HANDLING_POLL_INTERVAL_MS = 10;
/** Results for which a busy worker polls at once. Fewer wait for the next poll, so that it records several. */
const RECORDED_AT_ONCE = 16;
/** The time after its last work in which a worker counts as busy. */
const BUSY_MS = 50;
/** Longer than a post and the recording of its result. */
const LEASE_MS = 60_000;
const IDLE_POLL_INTERVAL_MS = 100;
const RECLAIM_INTERVAL_MS = 1_000;
const DEAD_AFTER_MS = 1_000;
const RECONNECT_GRACE_MS = 3_000;
const REPAIR_INTERVAL_MS = 30_000;

interface DeliveryWorkerOptions {
  /** In [0, 1). */
  random?: () => number;
  leaseMs?: number;
  /** Without it, the lease of a dead worker ends only by time. */
  presence?: Presence;
}

/**
 * Polls by one statement, which records results, creates deliveries for new events and leases due deliveries, and posts these. Any number of
 * workers may run. When a worker dies, its deliveries are due again as soon as its session lock is gone.
 */
export class DeliveryWorker {
  readonly #ctx: Context;
  readonly #random: () => number;
  readonly #leaseMs: number;
  readonly #presence: Presence | undefined;
  readonly #deadWorkers: DeadWorkerDetector;
  readonly #recorder: AttemptRecorder;
  readonly #secrets: SecretCache;
  readonly #pools = createPools();
  readonly #cursor: FanOutCursor = { after: null };
  readonly #stopping = new AbortController();
  /** Ends the pause of the polling loop when results wait or capacity is free again. */
  #endPause: () => void = () => {};
  #wasWoken = false;
  /** In milliseconds of performance.now(). */
  #deliveringUntil = 0;
  #handlingUntil = 0;
  #working: Promise<unknown> = Promise.resolve();

  constructor(
    ctx: Context,
    { random = Math.random, leaseMs = LEASE_MS, presence }: DeliveryWorkerOptions = {},
  ) {
    this.#ctx = ctx;
    this.#presence = presence;
    this.#deadWorkers = new DeadWorkerDetector(ctx, {
      presence,
      deadAfterMs: DEAD_AFTER_MS,
      reconnectGraceMs: RECONNECT_GRACE_MS,
    });
    this.#random = random;
    this.#leaseMs = leaseMs;
    this.#recorder = new AttemptRecorder(ctx);
    this.#secrets = new SecretCache(ctx);
  }

  start(): void {
    this.#recorder.startPolls();
    this.#working = Promise.all([
      this.#runRepeatedly(
        () => this.runOnce(),
        () => this.#pauseUntilWoken(this.#pollInterval()),
      ),
      this.#runRepeatedly(
        () => this.reclaimLeases(),
        () => this.#pause(RECLAIM_INTERVAL_MS),
      ),
      this.#runRepeatedly(
        () => this.#repairQueues(),
        () => this.#pause(REPAIR_INTERVAL_MS),
      ),
    ]);
  }

  /** Claims nothing more and waits for the running attempts. Releases attempts that shutdown aborts. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wake();
    await this.#working;
    await this.#recorder.endPolls();
    await this.idle();
  }

  async idle(): Promise<void> {
    await Promise.all(Object.values(this.#pools).flatMap(({ inFlight }) => [...inFlight.values()]));
    // Attempts of deliveries that killed several workers are in no pool.
    await this.#recorder.flush();
  }

  /** Returns whether any work was started. */
  async runOnce(): Promise<boolean> {
    const { quick, slow } = this.#pools;
    const lease = this.#createLease();
    const work = await this.#recorder.recordBy((attempts) =>
      recordCreateAndClaim(this.#ctx, this.#cursor, lease, this.#findLimits(quick, attempts), attempts),
    );
    this.#startAttempts(work.claimed, quick);
    const claimed = work.claimed.length + (work.hasSlow ? await this.#claimSlow(slow) : 0);
    const busyUntil = performance.now() + BUSY_MS;
    if (claimed > 0) this.#deliveringUntil = busyUntil;
    if (work.handled > 0) this.#handlingUntil = busyUntil;
    return work.handled + claimed > 0;
  }

  /** A delivery that killed several workers gets a recorded attempt. */
  async reclaimLeases(): Promise<void> {
    const poison = await reclaimDeliveries(
      this.#ctx.pool,
      this.#createLease(),
      await this.#deadWorkers.filterDead(await listLeasingWorkers(this.#ctx.pool)),
    );
    const post = { response: null, problem: "worker_lost" } as const;
    for (const delivery of poison)
      void this.#record(delivery, { attempt: createUnsentAttempt(this.#ctx), post });
  }

  async #repairQueues(): Promise<void> {
    const repaired = await repairQueues(this.#ctx.db, this.#ctx.now());
    if (repaired > 0) this.#ctx.log.warn({ queues: repaired }, "webhook queues slept past their deliveries");
  }

  #createLease(): Lease {
    const now = this.#ctx.now();
    const until = new Date(now.getTime() + this.#leaseMs);
    return { now, token: this.#ctx.newId(), until, worker: this.#presence?.key ?? null };
  }

  async #claimSlow(slow: AttemptPool): Promise<number> {
    const limits = this.#findLimits(slow);
    if (limits.limit === 0) return 0;
    const claimed = await claimDeliveries(this.#ctx.pool, this.#createLease(), { isSlow: true, ...limits });
    this.#startAttempts(claimed, slow);
    return claimed.length;
  }

  /** `ending`: attempts whose results are recorded before the claim. */
  #findLimits(
    { capacity, batchSize, inFlight }: AttemptPool,
    ending: RecordedAttempt[] = [],
  ): Omit<ClaimLimits, "isSlow"> {
    const free = capacity - inFlight.size + ending.filter(({ delivery }) => inFlight.has(delivery)).length;
    const limit = Math.min(batchSize, Math.ceil(free * MAX_SHARE_PER_BATCH));
    return { limit, perAccount: Math.ceil(free * MAX_SHARE_PER_ACCOUNT) };
  }

  #startAttempts(claimed: ClaimedDelivery[], { inFlight }: AttemptPool): void {
    for (const delivery of claimed) this.#startAttempt(delivery, inFlight);
  }

  #startAttempt(delivery: ClaimedDelivery, inFlight: AttemptPool["inFlight"]): void {
    const attempt = this.#attempt(delivery)
      .catch((error) =>
        this.#ctx.log.error({ delivery: delivery.id, err: error }, "a delivery was not attempted"),
      )
      .finally(() => {
        inFlight.delete(delivery);
        if (!this.#isDelivering()) this.#wake();
      });
    inFlight.set(delivery, attempt);
  }

  async #attempt(delivery: ClaimedDelivery): Promise<void> {
    const posted = await attemptDelivery(this.#ctx, delivery, this.#secrets);
    if (posted.post.problem === "shutdown") await releaseDelivery(this.#ctx.pool, delivery, this.#ctx.now());
    else await this.#record(delivery, posted);
  }

  async #record(delivery: ClaimedDelivery, { attempt, post }: PostedAttempt): Promise<void> {
    const result = toAttemptResult(delivery, post, attempt.endedAt, this.#random);
    const recorded = this.#recorder.add({ delivery, attempt, result });
    if (this.#recorder.waiting >= RECORDED_AT_ONCE || !this.#isDelivering()) this.#wake();
    await recorded;
  }

  async #runRepeatedly(work: () => Promise<unknown>, pause: () => Promise<void>): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await work().catch((error) =>
        this.#ctx.log.warn({ err: error }, "a run of the delivery worker failed; the next one tries again"),
      );
      await pause();
    }
  }

  #pause = (ms: number): Promise<void> =>
    sleep(ms, undefined, { signal: this.#stopping.signal }).catch(() => {});

  #isDelivering(): boolean {
    return performance.now() < this.#deliveringUntil;
  }

  #pollInterval(): number {
    if (this.#isDelivering()) return DELIVERING_POLL_INTERVAL_MS;
    return performance.now() < this.#handlingUntil ? HANDLING_POLL_INTERVAL_MS : IDLE_POLL_INTERVAL_MS;
  }

  #wake(): void {
    this.#wasWoken = true;
    this.#endPause();
  }

  async #pauseUntilWoken(ms: number): Promise<void> {
    if (!this.#wasWoken) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#endPause = resolve;
      const timer = setTimeout(resolve, ms);
      await promise;
      clearTimeout(timer);
    }
    this.#wasWoken = false;
  }
}
