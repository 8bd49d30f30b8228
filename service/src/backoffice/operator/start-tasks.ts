import type { Context } from "../../core/context.ts";
import { createFirstAdminLink } from "../admin/first-admin.ts";
import { loadDemoAtStart } from "../demo/demo.ts";
import { findOrCreatePrintedKey } from "./printed-key.ts";
import { printProgress, secondsSince } from "./progress.ts";
import { renderStartBox } from "./start-box.ts";

/** Beside the service: the API does not wait for it. */
export function buildWebClient({ webBuilds, log }: Context): void {
  webBuilds.ensureCurrent(log).catch((error) => log.error({ err: error }, "the web client was not built"));
}

/** On the first start in the test environment, waits for products of the demo, so that the printed command lists some. */
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

/** Waits for the first products only; all others, sales and reviews load in the background. */
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
  return (await shop.firstListed.catch(() => null)) !== null;
}
