import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../../core/context.ts";
import type { Evaluator } from "../../formats/workflow-definition/evaluator.ts";
import { isDatabaseUnavailable } from "../../platform/db/database.ts";
import { DeadWorkerDetector, type Presence } from "../../platform/db/dead-workers.ts";
import { RunDriver } from "./driver.ts";
import type { InsertedRun, RunPlace } from "./local-workers.ts";
import {
  type ClaimedRun,
  claimRuns,
  type Lease,
  listLeasingWorkers,
  releaseLease,
  releaseLeasesOf,
  renewLeases,
} from "./run-queries.ts";
import { traceDrive } from "./trace.ts";
import { WakeUp } from "./wake-up.ts";

/** A driven run mostly waits for its provider. */
const MAX_RUNS = 100;
/** Claims of one poll: few, so that other workers share the due runs. */
const CLAIM_LIMIT = 10;
/** A process that does not renew a lease for this time counts as dead; another worker claims the run. */
const LEASE_MS = 10_000;
const RENEW_INTERVAL_MS = 1_000;
/** Maximum delay of a timer; a notification wakes the worker at once. */
const POLL_MS = 250;
const DEAD_CHECK_INTERVAL_MS = 250;
const DEAD_AFTER_MS = 800;

interface DrivenRun {
  driver: RunDriver;
  ended: Promise<void>;
  /** A signal arrived while this process drove the run. */
  isSignaled: boolean;
}

interface WorkflowWorkerOptions {
  leaseMs?: number | undefined;
  maxRuns?: number | undefined;
  /** Without it, the leases of a dead worker end only by time. */
  presence?: Presence | undefined;
}

/**
 * Leases due runs, drives them and renews their leases. There may be any number of workers. The runs of a killed worker are due
 * again as soon as its session lock is gone, at the latest when their leases end.
 */
export class WorkflowWorker {
  readonly #ctx: Context;
  readonly #evaluator: Evaluator;
  readonly #leaseMs: number;
  readonly #maxRuns: number;
  readonly #presence: Presence | undefined;
  readonly #deadWorkers: DeadWorkerDetector;
  readonly #runs = new Map<string, DrivenRun>();
  /** The accounts of runs that requests of this process insert now. */
  readonly #reserved = new Map<Lease, string>();
  /** Places that claims under way may fill. */
  #claiming = 0;
  /** A run does not belong to the trace of the request that hands it over. */
  readonly #outsideRequests = AsyncLocalStorage.snapshot();
  readonly #stopping = new AbortController();
  readonly #wakeUp = new WakeUp();
  /** The last claim may have left due runs behind. */
  #mayHaveMore = false;
  #unsubscribe: () => void = () => {};
  #working: Promise<unknown> = Promise.resolve();

  constructor(
    ctx: Context,
    evaluator: Evaluator,
    { leaseMs = LEASE_MS, maxRuns = MAX_RUNS, presence }: WorkflowWorkerOptions = {},
  ) {
    this.#ctx = ctx;
    this.#evaluator = evaluator;
    this.#presence = presence;
    this.#deadWorkers = new DeadWorkerDetector(ctx, {
      presence,
      deadAfterMs: DEAD_AFTER_MS,
      // After an outage a worker may hold results that it could not store yet.
      reconnectGraceMs: leaseMs,
    });
    this.#leaseMs = leaseMs;
    this.#maxRuns = maxRuns;
  }

  start(): void {
    const unsubscribe = this.#ctx.runNotifications.onAnyRun((id) => {
      const driven = this.#runs.get(id);
      driven?.driver.signal();
      if (driven) driven.isSignaled = true;
      this.#wakeUp.wake();
    });
    const remove = this.#ctx.localWorkers.add(this);
    this.#unsubscribe = () => {
      unsubscribe();
      remove();
    };
    this.#working = Promise.all([
      this.#repeat(
        () => this.claimDueRuns(),
        () => this.#waitFor(POLL_MS),
      ),
      this.#repeat(
        () => this.renewLeases(),
        () => this.#pause(Math.min(RENEW_INTERVAL_MS, this.#leaseMs / 3)),
      ),
      this.#repeat(
        () => this.releaseLeasesOfDeadWorkers(),
        () => this.#pause(DEAD_CHECK_INTERVAL_MS),
      ),
    ]);
  }

  /**
   * Claims no more runs. Resolves when calls have ended or the context's shutdown has aborted them, and all leases are released.
   */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wakeUp.wake();
    await this.#working;
    for (const { driver } of this.#runs.values()) driver.stop();
    await this.#renewUntilIdle();
    this.#unsubscribe();
  }

  /** Resolves when this worker drives no run. */
  async idle(): Promise<void> {
    await Promise.all([...this.#runs.values()].map(({ ended }) => ended));
  }

  /** A place for a run of this account that a request inserts now. null: none is free, or older runs come first. */
  reserve(userId: string): RunPlace | null {
    if (this.#stopping.signal.aborted || this.#mayHaveMore || !this.#hasRoomFor(userId)) return null;
    const lease = this.#createLease();
    this.#reserved.set(lease, userId);
    const release = () => void this.#reserved.delete(lease);
    return {
      lease,
      release,
      drive: (inserted) => {
        release();
        const claimed = { id: inserted.id, userId, token: lease.token, leases: 1 };
        this.#outsideRequests(() => this.#driveInserted(claimed, inserted));
      },
    };
  }

  /** Whether this worker drives the run and has not reported its end yet. */
  drives(id: string): boolean {
    return this.#runs.get(id)?.driver.hasEnded === false;
  }

  /** Claims due runs and drives them; returns true if more may be due. */
  async claimDueRuns(): Promise<boolean> {
    const now = this.#ctx.now();
    for (const { driver } of this.#runs.values()) driver.tick(now);
    const room = this.#room;
    this.#mayHaveMore = room === 0;
    if (room === 0) return false;
    const limit = Math.min(CLAIM_LIMIT, Math.ceil(room / 2));
    const excludedUsers = this.#usersWithoutRoom(room);
    const { db, databaseUptime } = this.#ctx;
    const lease = this.#createLease();
    const claim = {
      held: [...this.#runs.keys()],
      excludedUsers,
      limit,
      includesExpired: this.#includesExpired,
    };
    this.#claiming += limit;
    try {
      const claimed = await databaseUptime.track(() => claimRuns(db, lease, claim));
      for (const run of claimed) this.#drive(run, null);
      this.#mayHaveMore = claimed.length === limit || excludedUsers.length > 0;
      return claimed.length === limit;
    } finally {
      this.#claiming -= limit;
    }
  }

  /** Excludes accounts that drive as many runs as there are free places, so that an account without runs finds one. */
  #usersWithoutRoom(room: number): string[] {
    const byAccount = Map.groupBy(this.#listAccounts(), (userId) => userId);
    return [...byAccount].flatMap(([userId, { length }]) => (length >= room ? [userId] : []));
  }

  /** As for claims: an account holds at most as many places as are free. */
  #hasRoomFor(account: string): boolean {
    return this.#listAccounts().filter((userId) => userId === account).length < this.#room;
  }

  get #room(): number {
    return this.#maxRuns - this.#runs.size - this.#reserved.size - this.#claiming;
  }

  /** The account of each place in use. */
  #listAccounts(): string[] {
    return [...[...this.#runs.values()].map(({ driver }) => driver.userId), ...this.#reserved.values()];
  }

  async renewLeases(): Promise<boolean> {
    const drivers = [...this.#runs.values()]
      .map(({ driver }) => driver)
      .filter((driver) => driver.isInserted);
    if (drivers.length === 0) return false;
    const { db, databaseUptime } = this.#ctx;
    const leases = drivers.map(({ lease }) => lease);
    const signals = await databaseUptime.track(() => renewLeases(db, leases, this.#leaseEnd()));
    for (const driver of drivers) driver.onLeaseRenewed(signals.get(driver.id));
    return false;
  }

  /** Makes the runs of dead workers due before their leases end. */
  async releaseLeasesOfDeadWorkers(): Promise<false> {
    const { db, now, log } = this.#ctx;
    const leasing = await listLeasingWorkers(db, now(), this.#leaseEnd());
    const dead = await this.#deadWorkers.filterDead(leasing);
    if (dead.length === 0) return false;
    const released = await releaseLeasesOf(db, dead, now(), this.#leaseEnd());
    log.warn({ runs: released }, "a worker died: its workflow runs are due again");
    this.#wakeUp.wake();
    return false;
  }

  /** After an outage the leases of live workers have expired, too. They get the time of one lease to renew them. */
  get #includesExpired(): boolean {
    return this.#ctx.databaseUptime.hasBeenUpFor(this.#leaseMs);
  }

  #createLease(): Lease {
    const worker = this.#presence?.key ?? null;
    return { now: this.#ctx.now(), until: this.#leaseEnd(), token: this.#ctx.newId(), worker };
  }

  #leaseEnd = () => new Date(this.#ctx.now().getTime() + this.#leaseMs);

  /** A worker that has stopped meanwhile leaves the run to others. */
  #driveInserted(claimed: ClaimedRun, inserted: InsertedRun): void {
    const { db, now } = this.#ctx;
    if (!this.#stopping.signal.aborted) this.#drive(claimed, inserted);
    else if (inserted.insertion) inserted.insertion.close();
    else void releaseLease(db, claimed, now(), { isForgiven: true }).catch(() => {});
  }

  #drive(claimed: ClaimedRun, inserted: InsertedRun | null): void {
    const driver = new RunDriver(this.#ctx, claimed, this.#evaluator, { leaseMs: this.#leaseMs, inserted });
    const ended = traceDrive(claimed, () => driver.drive())
      .catch(async (error) => {
        this.#ctx.log.error(
          { execution: claimed.id, err: error },
          "driving a workflow run failed; it is due again later",
        );
        // Not due at once, because the failure would repeat. An outage of the database does not count as a crash.
        const isForgiven = isDatabaseUnavailable(error);
        await releaseLease(this.#ctx.db, claimed, this.#leaseEnd(), { isForgiven }).catch(() => {});
      })
      .finally(() => {
        this.#runs.delete(claimed.id);
        // `claimRuns` skips runs that this worker drives, even due ones.
        if (driven.isSignaled || this.#mayHaveMore) this.#wakeUp.wake();
      });
    const driven: DrivenRun = { driver, ended, isSignaled: false };
    this.#runs.set(claimed.id, driven);
  }

  async #renewUntilIdle(): Promise<void> {
    const idle = this.idle().then(() => true);
    while (!(await Promise.race([idle, sleep(this.#leaseMs / 3, false, { ref: false })])))
      await this.renewLeases().catch(() => {});
  }

  async #repeat(work: () => Promise<boolean>, pause: () => Promise<void>): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const isBusy = await work().catch((error) => {
        this.#ctx.log.warn(
          { err: error },
          "claiming or renewing workflow runs failed; the next poll retries",
        );
        return false;
      });
      if (!isBusy) await pause();
    }
  }

  #pause = (ms: number): Promise<void> =>
    sleep(ms, undefined, { signal: this.#stopping.signal }).catch(() => {});

  async #waitFor(ms: number): Promise<void> {
    const timer = setTimeout(() => this.#wakeUp.wake(), ms);
    await this.#wakeUp.wait();
    clearTimeout(timer);
  }
}
