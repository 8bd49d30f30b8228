import type { Ratings } from "@stoa/contract";

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
