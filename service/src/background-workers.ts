import type { Context } from "./core/context.ts";
import { DeliveryWorker } from "./events/webhooks/delivery-worker.ts";
import { engine } from "./execution/workflow-runs/engine.ts";
import { listQueuedJobs, listScheduledJobs } from "./jobs.ts";
import { describeSkew } from "./platform/db/clock.ts";
import { startJobWorker } from "./platform/jobs/job-worker.ts";

interface Running {
  isQueueRunning(): boolean;
  stop(): Promise<void>;
}

/** All that works in this process without being asked by a request. It stops while the machine's clock is too far off. */
export class BackgroundWorkers {
  readonly #ctx: Context;
  #running: Running | null = null;
  #isStopping = false;
  #isSkewLogged = false;
  #changing: Promise<void> = Promise.resolve();

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  areRunning(): boolean {
    return this.#running?.isQueueRunning() ?? false;
  }

  async start(): Promise<void> {
    this.#ctx.clock.onSync(
      () => void this.#follow().catch((error) => this.#ctx.log.error({ err: error }, "workers")),
    );
    await this.#follow();
  }

  /** Lets what runs come to its end. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#follow();
  }

  /** One change at a time. */
  #follow(): Promise<void> {
    this.#changing = this.#changing.catch(() => {}).then(() => this.#change());
    return this.#changing;
  }

  async #change(): Promise<void> {
    const skew = describeSkew(this.#ctx.clock.skewMs);
    if (skew && !this.#isSkewLogged) this.#ctx.log.error({ skewMs: this.#ctx.clock.skewMs }, skew);
    this.#isSkewLogged = skew !== null;
    const shouldRun = !this.#isStopping && skew === null;
    if (shouldRun === (this.#running !== null)) return;
    if (shouldRun) this.#running = await this.#startAll();
    else {
      await this.#running?.stop();
      this.#running = null;
    }
  }

  async #startAll(): Promise<Running> {
    const ctx = this.#ctx;
    const queue = await startJobWorker(ctx, listScheduledJobs(ctx), listQueuedJobs(ctx));
    const deliveryWorker = new DeliveryWorker(ctx, { presence: ctx.presence });
    const workflows = engine.worker(ctx, ctx.evaluator);
    deliveryWorker.start();
    workflows.start();
    return {
      isQueueRunning: () => queue.isRunning(),
      async stop() {
        await Promise.all([deliveryWorker.stop(), workflows.stop(), queue.stop()]);
      },
    };
  }
}
