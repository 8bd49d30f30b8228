import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../../core/context.ts";
import type { Evaluator } from "../../formats/workflow-definition/evaluator.ts";
import { isDatabaseDown } from "../../platform/db/database.ts";
import { Driver } from "./driver.ts";
import { type Claimed, claimRuns, giveBack, renewLeases } from "./run-queries.ts";
import { traceDrive } from "./trace.ts";
import { Bell } from "./wake-up.ts";

/** Most of them wait for a provider. */
const MOST_HELD = 100;
/** So many are begun at most, and then more at the next look: other workers look, too. */
const BEGUN_AT_ONCE = 10;
/** Whoever did not renew a lease for so long is dead, and another process takes the run over. */
const LEASE_MS = 10_000;
const RENEW_EVERY_MS = 1_000;
/** How late a timer is at most; what is told is heard at once. */
const LOOK_EVERY_MS = 250;

interface Held {
  driver: Driver;
  over: Promise<void>;
  /** Something was said to it while it was held. */
  isTold: boolean;
}

/**
 * A worker of workflows; there may be any number. It leases runs that are due, drives them, and renews the leases as long as it
 * lives. What it holds when it is killed is due again when the lease ends.
 */
export class WorkflowWorker {
  readonly #ctx: Context;
  readonly #evaluator: Evaluator;
  readonly #leaseMs: number;
  readonly #mostHeld: number;
  readonly #held = new Map<string, Held>();
  readonly #stopping = new AbortController();
  readonly #bell = new Bell();
  /** More may be due than the last look could take. */
  #wasShort = false;
  #forget: () => void = () => {};
  #working: Promise<unknown> = Promise.resolve();

  constructor(ctx: Context, evaluator: Evaluator, leaseMs = LEASE_MS, mostHeld = MOST_HELD) {
    this.#ctx = ctx;
    this.#evaluator = evaluator;
    this.#leaseMs = leaseMs;
    this.#mostHeld = mostHeld;
  }

  start(): void {
    this.#forget = this.#ctx.runNotices.hearAll((id) => {
      const held = this.#held.get(id);
      held?.driver.tell();
      if (held) held.isTold = true;
      this.#bell.ring();
    });
    this.#working = Promise.all([
      this.#repeatedly(
        () => this.round(),
        () => this.#untilRungFor(LOOK_EVERY_MS),
      ),
      this.#repeatedly(
        () => this.renew(),
        () => this.#pause(Math.min(RENEW_EVERY_MS, this.#leaseMs / 3)),
      ),
    ]);
  }

  /** Begins nothing more; resolves when what was called has ended, or the context's shutdown broke it off, and all is left to others. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#bell.ring();
    await this.#working;
    for (const { driver } of this.#held.values()) driver.stop();
    await this.#renewUntilIdle();
    this.#forget();
  }

  /** Resolves when nothing is driven here. */
  async idle(): Promise<void> {
    await Promise.all([...this.#held.values()].map(({ over }) => over));
  }

  /** One look at what is due; answers whether there was anything. */
  async round(): Promise<boolean> {
    const now = this.#ctx.now();
    for (const { driver } of this.#held.values()) driver.tick(now);
    const room = this.#mostHeld - this.#held.size;
    this.#wasShort = room === 0;
    if (room === 0) return false;
    const most = Math.min(BEGUN_AT_ONCE, Math.ceil(room / 2));
    const notOf = this.#accountsWithout(room);
    const { db, databaseWatch } = this.#ctx;
    const lease = { now, until: this.#leaseEnd(), token: this.#ctx.newId() };
    const claim = { held: [...this.#held.keys()], notOf, most, takesOver: this.#takesOver };
    const claimed = await databaseWatch.watch(() => claimRuns(db, lease, claim));
    for (const run of claimed) this.#drive(run);
    this.#wasShort = claimed.length === most || notOf.length > 0;
    return claimed.length === most;
  }

  /** An account holds no more than are free: however many come, there is room for one who has none. */
  #accountsWithout(room: number): string[] {
    const drivers = [...this.#held.values()].map(({ driver }) => driver);
    const byAccount = Map.groupBy(drivers, ({ userId }) => userId);
    return [...byAccount].flatMap(([userId, { length }]) => (length >= room ? [userId] : []));
  }

  /** Says of all that is driven here that it still is. */
  async renew(): Promise<boolean> {
    if (this.#held.size === 0) return false;
    const drivers = [...this.#held.values()].map(({ driver }) => driver);
    const { db, databaseWatch } = this.#ctx;
    const leases = drivers.map(({ lease }) => lease);
    const held = await databaseWatch.watch(() => renewLeases(db, leases, this.#leaseEnd()));
    for (const driver of drivers) driver.renewed(held.get(driver.id));
    return false;
  }

  /** After an outage of the database the leases of workers that live are over, too: they have the time of one to renew them. */
  get #takesOver(): boolean {
    return this.#ctx.databaseWatch.hasBeenUpFor(this.#leaseMs);
  }

  #leaseEnd = () => new Date(this.#ctx.now().getTime() + this.#leaseMs);

  #drive(claimed: Claimed): void {
    const driver = new Driver(this.#ctx, claimed, this.#evaluator, this.#leaseMs);
    const over = traceDrive(claimed, () => driver.drive())
      .catch(async (error) => {
        this.#ctx.log.error({ execution: claimed.id, err: error }, "a workflow was left where it stood");
        // Not at once: what fails now would fail again. And not for ever, unless it is the database that is away.
        const isForgiven = isDatabaseDown(error);
        await giveBack(this.#ctx.db, claimed, this.#leaseEnd(), { isForgiven }).catch(() => {});
      })
      .finally(() => {
        this.#held.delete(claimed.id);
        // While it was held, no look found it, however due it was.
        if (held.isTold || this.#wasShort) this.#bell.ring();
      });
    const held: Held = { driver, over, isTold: false };
    this.#held.set(claimed.id, held);
  }

  async #renewUntilIdle(): Promise<void> {
    const idle = this.idle().then(() => true);
    while (!(await Promise.race([idle, sleep(this.#leaseMs / 3, false, { ref: false })])))
      await this.renew().catch(() => {});
  }

  async #repeatedly(work: () => Promise<boolean>, pause: () => Promise<void>): Promise<void> {
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

  async #untilRungFor(ms: number): Promise<void> {
    const timer = setTimeout(() => this.#bell.ring(), ms);
    await this.#bell.rung();
    clearTimeout(timer);
  }
}
