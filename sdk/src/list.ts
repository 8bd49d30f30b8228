import type { Call, ListMeta, WithResponse } from "./response.ts";

interface PageQuery {
  page: number;
}

/** One page of a list. */
export interface Page<T> {
  data: T[];
  meta: ListMeta;
  hasMore: boolean;
}

/** A list: `for await` over its items, one `page()`, or an array. It sends nothing before it is used. */
export class List<T> implements AsyncIterable<T> {
  readonly #fetchPage: (query: PageQuery) => Call<T[]>;
  readonly #firstPage: number;

  constructor(fetchPage: (query: PageQuery) => Call<T[]>, query: object = {}) {
    this.#fetchPage = fetchPage;
    this.#firstPage = Number((query as Partial<PageQuery>).page ?? 1);
  }

  /** The page that the query names, or another. */
  async page(number: number = this.#firstPage): Promise<Page<T>> {
    return toPage(await this.#fetchPage({ page: number }).withResponse());
  }

  async *pages(): AsyncGenerator<Page<T>> {
    for (let number = this.#firstPage; ; number++) {
      const page = await this.page(number);
      yield page;
      if (!page.hasMore) return;
    }
  }

  /** Every item, from the page that the query names. Items that are added meanwhile may shift others to the next page. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for await (const { data } of this.pages()) yield* data;
  }

  /** At most `limit` items. */
  async toArray({ limit = Number.POSITIVE_INFINITY }: { limit?: number } = {}): Promise<T[]> {
    const items: T[] = [];
    if (limit <= 0) return items;
    for await (const { data } of this.pages()) {
      items.push(...data);
      if (items.length >= limit) break;
    }
    return items.slice(0, limit);
  }
}

function toPage<T>({ data, meta }: WithResponse<T[]>): Page<T> {
  const listMeta = meta as ListMeta;
  // A total that is an estimate is a lower bound: then a full page may have a next one.
  const { page, limit, total, totalIsEstimate } = listMeta;
  const hasMore = totalIsEstimate ? data.length >= limit : page * limit < total;
  return { data, meta: listMeta, hasMore: data.length > 0 && hasMore };
}
