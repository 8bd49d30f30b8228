import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../context.ts";
import type { Evaluator } from "../workflows/evaluate.ts";
import { Bell } from "./bell.ts";
import { Driver } from "./driver.ts";
import { type Claimed, claimRuns, giveBack, renewLeases } from "./run-queries.ts";

/** Most of them wait for a provider. */
const MOST_HELD = 100;
/** So many are begun, and then more at the next look: other workers look, too. */
const BEGUN_AT_ONCE = 10;
/** Whoever did not renew a lease for so long is dead, and another process takes the run over. */
const LEASE_MS = 10_000;
const RENEW_EVERY_MS = 1_000;
/** How late a timer is at most; what is told is heard at once. */
const LOOK_EVERY_MS = 250;

/**
 * A worker of workflows; there may be any number. It leases runs that are due, drives them, and renews the leases as long as it
 * lives. What it holds when it is killed is due again when the lease ends.
 */
export class WorkflowWorker {
  readonly #ctx: Context;
  readonly #evaluator: Evaluator;
  readonly #leaseMs: number;
  readonly #held = new Map<string, { driver: Driver; over: Promise<void> }>();
  readonly #stopping = new AbortController();
  readonly #bell = new Bell();
  #forget: () => void = () => {};
  #working: Promise<unknown> = Promise.resolve();

  constructor(ctx: Context, evaluator: Evaluator, leaseMs = LEASE_MS) {
    this.#ctx = ctx;
    this.#evaluator = evaluator;
    this.#leaseMs = leaseMs;
  }

  start(): void {
    this.#forget = this.#ctx.runNotices.hearAll((id) => {
      this.#held.get(id)?.driver.tell();
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
    const room = MOST_HELD - this.#held.size;
    if (room === 0) return false;
    const lease = { now, until: this.#leaseEnd(), token: this.#ctx.newId() };
    const claimed = await claimRuns(
      this.#ctx.db,
      lease,
      [...this.#held.keys()],
      Math.min(room, BEGUN_AT_ONCE),
    );
    for (const run of claimed) this.#drive(run);
    return claimed.length === BEGUN_AT_ONCE;
  }

  /** Says of all that is driven here that it still is. */
  async renew(): Promise<boolean> {
    if (this.#held.size === 0) return false;
    const drivers = [...this.#held.values()].map(({ driver }) => driver);
    const held = await renewLeases(
      this.#ctx.db,
      drivers.map(({ lease }) => lease),
      this.#leaseEnd(),
    );
    for (const driver of drivers) driver.renewed(held.get(driver.id));
    return false;
  }

  #leaseEnd = () => new Date(this.#ctx.now().getTime() + this.#leaseMs);

  #drive(claimed: Claimed): void {
    const driver = new Driver(this.#ctx, claimed, this.#evaluator, this.#leaseMs);
    const over = driver
      .drive()
      .catch(async (error) => {
        this.#ctx.log.error({ execution: claimed.id, err: error }, "a workflow was left where it stood");
        // Not at once: what fails now would fail again.
        await giveBack(this.#ctx.db, claimed, new Date(this.#ctx.now().getTime() + this.#leaseMs)).catch(
          () => {},
        );
      })
      .finally(() => {
        this.#held.delete(claimed.id);
        this.#bell.ring();
      });
    this.#held.set(claimed.id, { driver, over });
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
