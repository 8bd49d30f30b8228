import type { Ratings } from "@stoa/contract";
import { type Expression, sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Queries } from "./database.ts";

/** What a filter finds that nothing can match. */
export const EMPTY_PAGE: Page<never> = { items: [], total: 0 };

export interface Page<T> {
  items: T[];
  total: number;
  totalIsEstimate?: true;
  /** The corrected words, when the searched words had no match. */
  correctedSearch?: string;
  /** Only for the reviews of a product. */
  ratings?: Ratings;
  /** Only for notifications. */
  unreadCount?: number;
  /** Only for the ledger entries of analytics. */
  sum?: number;
}

export interface Paging {
  page: number;
  limit: number;
}

export const offsetOf = ({ page, limit }: Paging): number => (page - 1) * limit;

export const mapPage = <A, B>(page: Page<A>, map: (item: A) => B): Page<B> => ({
  ...page,
  items: page.items.map(map),
});

/** Above this, counting would cost more than the page itself. */
const EXACT_TOTAL = 10_000;

/** Counts exactly up to a bound; above it, the total is a minimum. */
export async function countRows(
  db: Queries,
  found: { limit(rows: number): Expression<unknown> },
): Promise<Pick<Page<unknown>, "total" | "totalIsEstimate">> {
  const { rows } = await sql<{ total: number }>`
    select count(*) as total from ${found.limit(EXACT_TOTAL + 1)} as found`.execute(db);
  const { total } = firstOf(rows);
  return total > EXACT_TOTAL ? { total: EXACT_TOTAL, totalIsEstimate: true } : { total };
}
