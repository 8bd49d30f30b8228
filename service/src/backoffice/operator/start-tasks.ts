import type { Context } from "../../core/context.ts";
import { createFirstAdminLink } from "../admin/first-admin.ts";
import { loadDemoAtStart } from "../demo/demo.ts";
import { findOrCreatePrintedKey } from "./printed-key.ts";
import { renderStartBox } from "./start-box.ts";

/** To stderr like logs: stdout has the box. `startedAt` is a Unix time in milliseconds. */
export const printProgress = (what: string, startedAt = performance.timeOrigin) =>
  console.error(`${secondsSince(startedAt).padStart(6)} s  ${what}`);

const secondsSince = (startedAt: number) => ((Date.now() - startedAt) / 1000).toFixed(1);

/** Beside the service: the API does not wait for it. */
export function buildWebClient({ webBuilds, log }: Context): void {
  webBuilds.ensureCurrent(log).catch((error) => log.error({ err: error }, "the web client was not built"));
}

/** On the first start in the test environment, waits for the demo, so that the printed command lists products. */
export async function printStartBox(ctx: Context, startedAt: number): Promise<void> {
  const { config } = ctx;
  const isTest = config.environment === "test";
  if (isTest) printProgress("loading the demo shop if it is missing", startedAt);
  const stillLoading = isTest && (await loadDemoProducts(ctx));
  const key = isTest ? await findOrCreatePrintedKey(ctx) : null;
  // Without the API the link would have no page.
  const adminLink = config.roles.api ? await createFirstAdminLink(ctx) : null;
  const seconds = secondsSince(startedAt);
  const origin = ctx.links.origin();
  console.log(renderStartBox({ config, origin, key, seconds, stillLoading, adminLink }));
}

/** Waits for the products only; sales load in the background. */
export async function loadDemoProducts(ctx: Context): Promise<boolean> {
  const shop = loadDemoAtStart(ctx);
  shop.loaded.then(
    (figures) => figures && ctx.log.info(figures, "the demo shop is loaded"),
    (error) => {
      if (!ctx.pool.ending)
        ctx.log.error({ err: error }, "the demo shop was not loaded; the next start tries again");
    },
  );
  // Another process may be loading, or the database may break: the service starts anyway.
  return (await shop.stocked.catch(() => null)) !== null;
}
