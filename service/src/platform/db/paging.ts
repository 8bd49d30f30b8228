import type { Ratings } from "@stoa/contract";
import { type Expression, sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Queries } from "./database.ts";

/** A page of a list, as a verb answers it. */
export interface Page<T> {
  items: T[];
  total: number;
  totalIsEstimate?: true;
  /** What was searched for in the place of words that nothing holds. */
  correctedSearch?: string;
  /** Of the reviews of a product: how they rate it. */
  ratings?: Ratings;
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

/** Past this, counting would cost more than the page itself. */
const EXACT_TOTAL = 10_000;

/** How many rows a query finds: exactly up to a bound, above it at least so many. */
export async function countRows(
  db: Queries,
  found: { limit(rows: number): Expression<unknown> },
): Promise<Pick<Page<unknown>, "total" | "totalIsEstimate">> {
  const { rows } = await sql<{ total: number }>`
    select count(*) as total from ${found.limit(EXACT_TOTAL + 1)} as found`.execute(db);
  const { total } = firstOf(rows);
  return total > EXACT_TOTAL ? { total: EXACT_TOTAL, totalIsEstimate: true } : { total };
}
