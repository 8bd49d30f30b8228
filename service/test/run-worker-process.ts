/** A workflow worker in a process of its own, which lives until it is killed. */
import { openBase } from "../src/base.ts";
import type { Config } from "../src/core/config/config.ts";
import { createLog } from "../src/core/log.ts";
import { WorkflowWorker } from "../src/execution/workflow-runs/worker.ts";
import { Evaluator } from "../src/formats/workflow-definition/evaluator.ts";
import type { IntegrationOverrides } from "../src/integrations.ts";

export interface RunWorkerOptions {
  config: Config;
  target: string;
  /** The market's fixed clock. */
  now: Date;
  baseUrls: NonNullable<NonNullable<IntegrationOverrides["providers"]>["baseUrls"]>;
  /** Whether its session lock shows that it lives. */
  hasLock?: boolean;
}

process.once("message", async ({ config, target, now, baseUrls, hasLock = false }: RunWorkerOptions) => {
  const overrides = { log: createLog("silent"), now: () => now, providers: { baseUrls } };
  const { ctx } = await openBase(config, { target, maxConnections: 4 }, overrides);
  ctx.notifications.listen();
  if (hasLock) await ctx.presence.start();
  new WorkflowWorker(ctx, new Evaluator(), hasLock ? { presence: ctx.presence } : {}).start();
  process.send!("at work");
});

// The parent has ended.
process.once("disconnect", () => process.exit());
