import { toVisibleLine } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import type { FileResponse } from "../../platform/http/route.ts";
import { type Cell, csvAnswer, csvLines } from "./csv.ts";
import { boughtIn, toCustomer } from "./customers.ts";
import { type Bought, type CustomerRow, listCustomers } from "./customers-queries.ts";
import { currenciesOf } from "./sales.ts";
import { type SpanQuery, spanOf } from "./span.ts";

/** So many are little memory, and few pages even of a hundred thousand. */
const ROWS_AT_ONCE = 1_000;
const COLUMNS = ["id", "name", "currency", "purchases", "totalSpent", "firstPurchaseAt", "lastPurchaseAt"];

/** Every customer of the days as a file, a page at a time: whoever reads slowly holds no connection and no memory. */
export async function exportCustomers(
  ctx: Context,
  { userId }: Member,
  query: SpanQuery,
): Promise<FileResponse> {
  const span = await spanOf(ctx, query);
  const { currency } = await currenciesOf(ctx, ctx.db, userId, query.currency);
  return csvAnswer("customers", span, csvLines(COLUMNS, rows(ctx, boughtIn(span, userId, currency))));
}

async function* rows(ctx: Context, bought: Bought): AsyncGenerator<Cell[]> {
  let after: string | null = null;
  for (;;) {
    const page: CustomerRow[] = await listCustomers(ctx.db, bought, { by: "id", limit: ROWS_AT_ONCE, after });
    for (const row of page) yield cellsOf(row, bought.currency);
    if (page.length < ROWS_AT_ONCE) return;
    after = page.at(-1)!.id;
  }
}

function cellsOf(row: CustomerRow, currency: string): Cell[] {
  const { id, name, purchases, totalSpent, firstPurchaseAt, lastPurchaseAt } = toCustomer(row, currency);
  return [id, toVisibleLine(name), currency, purchases, totalSpent, firstPurchaseAt, lastPurchaseAt];
}
