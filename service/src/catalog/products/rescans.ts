import type { Context } from "../../core/context.ts";
import { SCANNER_VERSION } from "../../formats/content-scan/scan.ts";
import { forEachRow } from "../../platform/jobs/for-each-row.ts";
import { reportFindings, scanProduct, storeScans } from "./product-scans.ts";
import { findVersion, lockProduct } from "./queries.ts";
import { findScan, listOutdatedScans, type OutdatedScan } from "./scan-queries.ts";
import { SCANNED_STATUSES } from "./scanned-texts.ts";

const BATCH_SIZE = 200;
/** Of one run of the job, some minutes. The next run goes on, because a version with a new scan is no longer listed. */
const MAX_BATCHES = 100;

/** Scans versions that were published before the scanner, or were scanned by older rules. */
export async function scanOutdatedVersions(ctx: Context): Promise<void> {
  let after: OutdatedScan | null = null;
  for (let batch = 0; batch < MAX_BATCHES; batch++) {
    const options = { scannerVersion: Number(SCANNER_VERSION), after, limit: BATCH_SIZE };
    const outdated: OutdatedScan[] = await listOutdatedScans(ctx.db, options);
    await forEachRow(
      outdated,
      (version) => scanVersion(ctx, version),
      ({ productId, version }, error) =>
        ctx.log.error({ err: error, productId, version }, "a version could not be scanned"),
    );
    after = outdated.at(-1) ?? null;
    if (outdated.length < BATCH_SIZE) return;
  }
}

/** Under the product's lock, so that the scan of a change at the same time stays. */
async function scanVersion(ctx: Context, outdated: OutdatedScan): Promise<void> {
  await ctx.db.transaction().execute(async (tx) => {
    const product = await lockProduct(tx, outdated.productId);
    if (!product || !SCANNED_STATUSES.has(product.status)) return;
    const before = await findScan(tx, outdated);
    if (before && Number(before.scannerVersion) >= Number(SCANNER_VERSION)) return;
    const version = await findVersion(tx, product.id, { major: null, pinned: outdated.version });
    if (!version) return;
    const scanned = { ...product, ...version };
    const change = { result: scanProduct(scanned), before: before?.findings ?? [] };
    await storeScans(ctx, tx, [{ product: scanned, result: change.result }]);
    if (product.status === "published") await reportFindings(ctx, tx, product.id, change, version.version);
  });
}
