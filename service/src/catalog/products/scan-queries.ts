import type { ScanBadge, ScanFinding } from "@stoa/contract";
import { sql } from "kysely";
import type { Queries, Tx } from "../../platform/db/database.ts";

export interface ScanRow {
  numbers: number[];
  scannedAt: Date;
  scannerVersion: string;
  findings: ScanFinding[];
  badges: ScanBadge[];
}

/** Replaces the result of an earlier scan of the version. */
export async function writeScan(tx: Tx, productId: string, scan: ScanRow): Promise<void> {
  const row = { ...scan, productId, findings: JSON.stringify(scan.findings) };
  await tx
    .insertInto("productScans")
    .values(row)
    .onConflict((conflict) => conflict.columns(["productId", "numbers"]).doUpdateSet(row))
    .execute();
}

/** That of the newest version, if it was scanned, and of the last scanned version before it. */
export async function findLastScans(
  db: Queries,
  productId: string,
): Promise<{ scan: ScanRow | undefined; before: ScanRow | undefined }> {
  const { rows } = await sql<ScanRow & { isNewest: boolean }>`
    select s.numbers, s.scanned_at as "scannedAt", s.scanner_version as "scannerVersion", s.findings, s.badges,
           s.numbers = string_to_array(p.version, '.')::int[] as "isNewest"
      from product_scans s join products p on p.id = s.product_id
     where s.product_id = ${productId} and s.numbers <= string_to_array(p.version, '.')::int[]
     order by s.numbers desc limit 2`.execute(db);
  const [first, second] = rows;
  return first?.isNewest ? { scan: first, before: second } : { scan: undefined, before: first };
}
