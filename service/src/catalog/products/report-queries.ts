import type { SuspensionReason } from "@stoa/contract";
import { sql } from "kysely";
import type { Queries, Tx } from "../../platform/db/database.ts";

interface Report {
  /** null: the marketplace itself. */
  reporterId: string | null;
  reasonCode: SuspensionReason;
  comment: string | null;
  createdAt: Date;
}

export interface OpenReport extends Report {
  productId: string;
  reporterName: string | null;
  /** Of all open reports of the product. */
  openReports: number;
}

/**
 * Returns false when the user has an open report of the product. A resolved one is replaced; the marketplace does not repeat what moderators
 * resolved.
 */
export async function insertReport(tx: Tx, report: Report & { productId: string }): Promise<boolean> {
  const written = await tx
    .insertInto("productReports")
    .values(report)
    .onConflict((conflict) =>
      conflict
        .columns(["productId", "reporterId"])
        .doUpdateSet({ ...report, resolvedAt: null })
        .where("productReports.resolvedAt", "is not", null)
        .where((where) =>
          where.or([
            where("productReports.reporterId", "is not", null),
            where("productReports.comment", "is distinct from", report.comment),
          ]),
        ),
    )
    .returning("productId")
    .executeTakeFirst();
  return written !== undefined;
}

/** Returns the number of resolved reports. */
export async function resolveReports(tx: Tx, productId: string, now: Date): Promise<number> {
  const { numUpdatedRows } = await tx
    .updateTable("productReports")
    .set({ resolvedAt: now })
    .where("productId", "=", productId)
    .where("resolvedAt", "is", null)
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

/** The oldest open reports of each product. */
export async function listOpenReports(
  db: Queries,
  productIds: string[],
  most: number,
): Promise<OpenReport[]> {
  const { rows } = await sql<OpenReport>`
    select o.product_id, o.reporter_id, u.name as "reporterName", o.reason_code, o.comment, o.created_at, o.open_reports
      from unnest(${productIds}::uuid[]) as asked (id)
     cross join lateral (
       select o.*, count(*) over () as open_reports from product_reports o
        where o.product_id = asked.id and o.resolved_at is null
        order by o.created_at, o.reporter_id limit ${most}) o
      left join users u on u.id = o.reporter_id
     order by o.created_at, o.reporter_id`.execute(db);
  return rows;
}
