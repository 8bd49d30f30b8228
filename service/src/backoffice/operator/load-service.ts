import { setTimeout as sleep } from "node:timers/promises";
import { once } from "../../core/once.ts";

/**
 * Node loads the files of an import without a pause. In parts, because a start has more to do meanwhile: each takes about 0.1 s
 * and includes what no part before has.
 */
const parts = [
  () => import("@stoa/contract"),
  () => import("../../platform/http/server.ts"),
  () => import("../../platform/jobs/job-worker.ts"),
  () => import("../../catalog/products/products.ts"),
  () => import("../../commerce/checkout/purchases.ts"),
  () => import("../../execution/workflow-runs/engine.ts"),
];
/** Several steps of the start, each of which waits for the system. */
const PAUSE_MS = 3;

export const loadService = once(async () => {
  for (const load of parts) {
    await load();
    await sleep(PAUSE_MS);
  }
  const [{ startService }, { buildWebClient, printStartBox }] = await Promise.all([
    import("../../app.ts"),
    import("./start-tasks.ts"),
  ]);
  return { startService, buildWebClient, printStartBox };
});
