/** A worker of deliveries in a process of its own, which lives until it is killed. */
import { openBase } from "../src/base.ts";
import type { Config } from "../src/config.ts";
import { createLog } from "../src/log.ts";
import { Courier } from "../src/webhooks/courier.ts";

export interface CourierWish {
  config: Config;
  target: string;
  leaseMs: number;
}

process.once("message", async ({ config, target, leaseMs }: CourierWish) => {
  const { ctx } = await openBase(config, { target, maxConnections: 4 }, { log: createLog("silent") });
  new Courier(ctx, undefined, leaseMs).start();
  process.send!("at work");
});

// Nobody is left to kill it.
process.once("disconnect", () => process.exit());
