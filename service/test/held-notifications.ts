import type { TestContext } from "node:test";
import type { Market } from "./market.ts";

/**
 * The notifications of other processes stay outstanding until the returned function is called, or the test ends. The caches count
 * as current meanwhile: after a second without a proof, a request that only reads would wait, too.
 */
export function holdNotifications(t: TestContext, { service }: Market): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  // A request that waits for them must not outlive a test that fails.
  t.after(() => resolve());
  t.mock.method(service.ctx.notifications, "catchUp", () => promise);
  t.mock.method(service.ctx.notifications, "areCurrent", () => true);
  return resolve;
}
