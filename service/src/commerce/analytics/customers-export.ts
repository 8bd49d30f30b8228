import { toVisibleLine } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { lastOf } from "../../core/required.ts";
import type { FileResponse } from "../../platform/http/route.ts";
import { type Cell, csvFile, csvLines } from "./csv.ts";
import { customerScope, toCustomer } from "./customers.ts";
import { type CustomerRow, type CustomerScope, listCustomers } from "./customers-queries.ts";
import { type DateRangeQuery, parseDateRange } from "./date-range.ts";
import { chooseCurrency } from "./sales.ts";

const BATCH_SIZE = 1_000;
const COLUMNS = ["id", "name", "currency", "purchases", "totalSpent", "firstPurchaseAt", "lastPurchaseAt"];

/** Reads one page at a time, so that a slow reader occupies no database connection. */
export async function exportCustomers(
  ctx: Context,
  { userId }: Member,
  query: DateRangeQuery,
): Promise<FileResponse> {
  const span = await parseDateRange(ctx, query);
  const { currency } = await chooseCurrency(ctx, ctx.db, userId, query.currency);
  return csvFile(
    "customers",
    span,
    csvLines(COLUMNS, iterateRows(ctx, customerScope(span, userId, currency))),
  );
}

async function* iterateRows(ctx: Context, bought: CustomerScope): AsyncGenerator<Cell[]> {
  let after: string | null = null;
  for (;;) {
    const page: CustomerRow[] = await listCustomers(ctx.db, bought, { limit: BATCH_SIZE, after });
    for (const row of page) yield toCells(row, bought.currency);
    if (page.length < BATCH_SIZE) return;
    after = lastOf(page).id;
  }
}

function toCells(row: CustomerRow, currency: string): Cell[] {
  const { id, name, purchases, totalSpent, firstPurchaseAt, lastPurchaseAt } = toCustomer(row, currency);
  return [id, toVisibleLine(name), currency, purchases, totalSpent, firstPurchaseAt, lastPurchaseAt];
}
