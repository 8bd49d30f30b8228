import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../../core/context.ts";
import type { Evaluator } from "../../formats/workflow-definition/evaluator.ts";
import { isDatabaseUnavailable } from "../../platform/db/database.ts";
import { RunDriver } from "./driver.ts";
import { type ClaimedRun, claimRuns, releaseLease, renewLeases } from "./run-queries.ts";
import { traceDrive } from "./trace.ts";
import { WakeUp } from "./wake-up.ts";

/** Most of them wait for a provider. */
const MAX_RUNS = 100;
/** So many are begun at limit, and then more at the next look: other workers look, too. */
const CLAIM_LIMIT = 10;
/** A process that does not renew a lease for this time counts as dead; another worker claims the run. */
const LEASE_MS = 10_000;
const RENEW_INTERVAL_MS = 1_000;
/** Maximum delay of a timer; a notification wakes the worker at once. */
const POLL_MS = 250;

interface DrivenRun {
  driver: RunDriver;
  ended: Promise<void>;
  /** A signal came while the run was driven here. */
  isSignaled: boolean;
}

/**
 * A worker of workflows; there may be any number. It leases runs that are due, drives them, and renews the leases as long as it
 * lives. What it holds when it is killed is due again when the lease ends.
 */
export class WorkflowWorker {
  readonly #ctx: Context;
  readonly #evaluator: Evaluator;
  readonly #leaseMs: number;
  readonly #maxRuns: number;
  readonly #runs = new Map<string, DrivenRun>();
  readonly #stopping = new AbortController();
  readonly #wakeUp = new WakeUp();
  /** More may be due than the last look could take. */
  #mayHaveMore = false;
  #unsubscribe: () => void = () => {};
  #working: Promise<unknown> = Promise.resolve();

  constructor(ctx: Context, evaluator: Evaluator, leaseMs = LEASE_MS, maxRuns = MAX_RUNS) {
    this.#ctx = ctx;
    this.#evaluator = evaluator;
    this.#leaseMs = leaseMs;
    this.#maxRuns = maxRuns;
  }

  start(): void {
    this.#unsubscribe = this.#ctx.runNotifications.onAnyRun((id) => {
      const held = this.#runs.get(id);
      held?.driver.signal();
      if (held) held.isSignaled = true;
      this.#wakeUp.wake();
    });
    this.#working = Promise.all([
      this.#repeat(
        () => this.claimDueRuns(),
        () => this.#waitFor(POLL_MS),
      ),
      this.#repeat(
        () => this.renewLeases(),
        () => this.#pause(Math.min(RENEW_INTERVAL_MS, this.#leaseMs / 3)),
      ),
    ]);
  }

  /** Begins nothing more; resolves when what was called has ended, or the context's shutdown broke it off, and all is left to others. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wakeUp.wake();
    await this.#working;
    for (const { driver } of this.#runs.values()) driver.stop();
    await this.#renewUntilIdle();
    this.#unsubscribe();
  }

  /** Resolves when nothing is driven here. */
  async idle(): Promise<void> {
    await Promise.all([...this.#runs.values()].map(({ ended: over }) => over));
  }

  /** Claims due runs and drives them; returns true if more may be due. */
  async claimDueRuns(): Promise<boolean> {
    const now = this.#ctx.now();
    for (const { driver } of this.#runs.values()) driver.tick(now);
    const room = this.#maxRuns - this.#runs.size;
    this.#mayHaveMore = room === 0;
    if (room === 0) return false;
    const limit = Math.min(CLAIM_LIMIT, Math.ceil(room / 2));
    const excludedUsers = this.#usersWithoutRoom(room);
    const { db, databaseUptime } = this.#ctx;
    const lease = { now, until: this.#leaseEnd(), token: this.#ctx.newId() };
    const claim = {
      held: [...this.#runs.keys()],
      excludedUsers,
      limit,
      includesExpired: this.#includesExpired,
    };
    const claimed = await databaseUptime.track(() => claimRuns(db, lease, claim));
    for (const run of claimed) this.#drive(run);
    this.#mayHaveMore = claimed.length === limit || excludedUsers.length > 0;
    return claimed.length === limit;
  }

  /** An account holds no more than are free: however many come, there is room for one who has none. */
  #usersWithoutRoom(room: number): string[] {
    const drivers = [...this.#runs.values()].map(({ driver }) => driver);
    const byAccount = Map.groupBy(drivers, ({ userId }) => userId);
    return [...byAccount].flatMap(([userId, { length }]) => (length >= room ? [userId] : []));
  }

  /** Renews the leases of all runs that are driven here. */
  async renewLeases(): Promise<boolean> {
    if (this.#runs.size === 0) return false;
    const drivers = [...this.#runs.values()].map(({ driver }) => driver);
    const { db, databaseUptime } = this.#ctx;
    const leases = drivers.map(({ lease }) => lease);
    const held = await databaseUptime.track(() => renewLeases(db, leases, this.#leaseEnd()));
    for (const driver of drivers) driver.onLeaseRenewed(held.get(driver.id));
    return false;
  }

  /** After an outage of the database the leases of workers that live are over, too: they have the time of one to renew them. */
  get #includesExpired(): boolean {
    return this.#ctx.databaseUptime.hasBeenUpFor(this.#leaseMs);
  }

  #leaseEnd = () => new Date(this.#ctx.now().getTime() + this.#leaseMs);

  #drive(claimed: ClaimedRun): void {
    const driver = new RunDriver(this.#ctx, claimed, this.#evaluator, this.#leaseMs);
    const over = traceDrive(claimed, () => driver.drive())
      .catch(async (error) => {
        this.#ctx.log.error({ execution: claimed.id, err: error }, "a workflow was left where it stood");
        // Not at once: what fails now would fail again. And not for ever, unless it is the database that is away.
        const isForgiven = isDatabaseUnavailable(error);
        await releaseLease(this.#ctx.db, claimed, this.#leaseEnd(), { isForgiven }).catch(() => {});
      })
      .finally(() => {
        this.#runs.delete(claimed.id);
        // While it was held, no look found it, however due it was.
        if (held.isSignaled || this.#mayHaveMore) this.#wakeUp.wake();
      });
    const held: DrivenRun = { driver, ended: over, isSignaled: false };
    this.#runs.set(claimed.id, held);
  }

  async #renewUntilIdle(): Promise<void> {
    const idle = this.idle().then(() => true);
    while (!(await Promise.race([idle, sleep(this.#leaseMs / 3, false, { ref: false })])))
      await this.renewLeases().catch(() => {});
  }

  async #repeat(work: () => Promise<boolean>, pause: () => Promise<void>): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const isBusy = await work().catch((error) => {
        this.#ctx.log.warn({ err: error }, "a round of workflows failed; the next one tries again");
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
