import type { ScanBadge, ScanFinding } from "@stoa/contract";
import { sql } from "kysely";
import { NIL } from "uuid";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { prepared } from "../../platform/db/prepared.ts";

export interface ScanRow {
  numbers: number[];
  scannedAt: Date;
  scannerVersion: string;
  findings: ScanFinding[];
  badges: ScanBadge[];
}

/** Replaces the results of earlier scans of the versions. */
export const writeScans = (tx: Tx, scans: (ScanRow & { productId: string })[]) =>
  sql`${prepared("write_scans")}
    insert into product_scans (product_id, numbers, scanned_at, scanner_version, findings, badges)
    select * from json_to_recordset(${JSON.stringify(scans)}::json) as s (
           "productId" uuid, numbers integer[], "scannedAt" timestamptz, "scannerVersion" text, findings jsonb, badges text[])
     order by 1
    on conflict (product_id, numbers) do update set
           scanned_at = excluded.scanned_at, scanner_version = excluded.scanner_version, findings = excluded.findings,
           badges = excluded.badges`.execute(tx);

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

export interface OutdatedScan {
  productId: string;
  version: string;
  numbers: number[];
}

/**
 * The next versions whose scan is missing or older than these rules: of products on sale or before moderators, those that a reader gets, and
 * all that were scanned before, because a new version is compared with them.
 */
export async function listOutdatedScans(
  db: Queries,
  { scannerVersion, after, limit }: { scannerVersion: number; after: OutdatedScan | null; limit: number },
): Promise<OutdatedScan[]> {
  const { rows } = await sql<OutdatedScan>`
    select v.product_id as "productId", v.version, v.numbers
      from products p join product_versions v on v.product_id = p.id
      left join product_scans s on s.product_id = v.product_id and s.numbers = v.numbers
     where p.status in ('published', 'pending_review')
       and (s.scanner_version::int < ${scannerVersion}
            or s.product_id is null
               and (v.version = p.version
                    or v.numbers = (select max(w.numbers) from product_versions w
                                     where w.product_id = v.product_id and w.numbers[1] = v.numbers[1]
                                       and w.numbers <= p.released)))
       and (v.product_id, v.numbers) > (${after?.productId ?? NIL}::uuid, ${after?.numbers ?? []}::int[])
     order by v.product_id, v.numbers limit ${limit}`.execute(db);
  return rows;
}

export async function findScan(
  db: Queries,
  { productId, numbers }: Pick<OutdatedScan, "productId" | "numbers">,
): Promise<Pick<ScanRow, "findings" | "scannerVersion"> | undefined> {
  const { rows } = await sql<Pick<ScanRow, "findings" | "scannerVersion">>`
    select findings, scanner_version as "scannerVersion" from product_scans
     where product_id = ${productId} and numbers = ${numbers}::int[]`.execute(db);
  return rows[0];
}
