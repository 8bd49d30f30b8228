/** A delivery worker in a process of its own, which lives until it is killed. */
import { openBase } from "../src/base.ts";
import type { Config } from "../src/core/config/config.ts";
import { createLog } from "../src/core/log.ts";
import { DeliveryWorker } from "../src/events/webhooks/delivery-worker.ts";
import { WorkerPresence } from "../src/platform/db/presence.ts";

export interface DeliveryWorkerOptions {
  config: Config;
  target: string;
}

process.once("message", async ({ config, target }: DeliveryWorkerOptions) => {
  const { ctx } = await openBase(config, { target, maxConnections: 4 }, { log: createLog("silent") });
  const presence = new WorkerPresence({ target }, ctx.pool, ctx.log);
  await presence.start();
  new DeliveryWorker(ctx, { presence }).start();
  process.send!("at work");
});

// The parent has ended.
process.once("disconnect", () => process.exit());
