import type { DraftScan, ScanDraft } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { SCANNER_VERSION } from "../../formats/content-scan/scan.ts";
import { authorizeChange } from "./ownership.ts";
import { createFindingFilter, lastFindings, scanProduct } from "./product-scans.ts";
import { SCANNED_STATUSES } from "./scanned-texts.ts";

/** Scans the product as it would be with the change, for its author. Writes nothing. */
export async function scanDraft(
  ctx: Context,
  caller: Member,
  productId: string,
  change: ScanDraft,
): Promise<DraftScan> {
  const product = await authorizeChange(ctx, caller, productId);
  if (product.status === "deleted") throw new ApiError("PRODUCT_NOT_FOUND");
  const sent = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
  const { findings, badges } = scanProduct({ ...product, ...sent });
  const isNew = createFindingFilter(await lastFindings(ctx.db, product.id));
  // A publication refuses every secret; a change of a product on sale only those that it adds.
  const isOffered = SCANNED_STATUSES.has(product.status);
  return {
    scannedAt: ctx.now().toISOString(),
    scannerVersion: SCANNER_VERSION,
    badges,
    findings: findings.map((finding) => ({
      ...finding,
      isBlocking: finding.kind === "secret" && (!isOffered || isNew(finding)),
      isNew: isNew(finding),
    })),
  };
}
