import type { ProductDetail } from "@stoa/sdk";
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";
import { BALANCES, OWN_PRODUCTS, PRODUCT_NAMES, STUDIO_LIST, TASKS } from "../member-requests.ts";
import { defined, oneOf, pageNumber, textOf } from "../routes/search-params.ts";
import { fetchPayoutAccount } from "./selling.ts";

/** The most that a page of the API has. */
const MAX_LIMIT = 100;

export const PRODUCT_STATUSES = [
  "published",
  "draft",
  "pending_review",
  "rejected",
  "unpublished",
  "suspended",
] as const;
export const PRODUCT_SORTS = ["updatedAt", "createdAt", "title", "price", "popularity", "rating"] as const;
export type ProductSort = (typeof PRODUCT_SORTS)[number];

export interface ProductsSearch {
  q?: string;
  status?: (typeof PRODUCT_STATUSES)[number];
  type?: "prompt" | "workflow";
  /** Default: the last change. */
  sort?: ProductSort;
  page?: number;
  import?: true;
}

export const parseProductsSearch = (given: Record<string, unknown>): ProductsSearch =>
  defined({
    q: textOf(given["q"], 200),
    status: oneOf(given["status"], PRODUCT_STATUSES),
    type: oneOf(given["type"], ["prompt", "workflow"] as const),
    sort: oneOf(given["sort"], PRODUCT_SORTS),
    ...pageNumber(given),
    import: given["import"] ? true : undefined,
  } as const) as ProductsSearch;

/** The query of GET /products. */
export const productsRequest = ({ q, status, type, sort = "updatedAt", page }: ProductsSearch) =>
  defined({
    ...OWN_PRODUCTS,
    search: q,
    status,
    type,
    sort,
    order: sort === "title" ? ("asc" as const) : ("desc" as const),
    page,
  });

export const ownProductsQuery = (search: ProductsSearch) =>
  queryOptions({
    queryKey: ["studio", "products", productsRequest(search)],
    queryFn: ({ signal }) => stoa.products.list(productsRequest(search), { signal }).page(),
    staleTime: 5_000,
  });

/** For selects: the products that sell most first. */
export const productNamesQuery = queryOptions({
  queryKey: ["studio", "product-names"],
  queryFn: ({ signal }) => stoa.products.list(PRODUCT_NAMES, { signal }).page(),
});

/** The counted runs of the products of one page, by id. */
export const runCountsOfQuery = (productIds: string[]) =>
  queryOptions({
    queryKey: ["studio", "run-counts", productIds],
    queryFn: async ({ signal }) => {
      const { data } = await stoa.products
        .runCounts({ productIds: productIds.join(","), limit: MAX_LIMIT }, { signal })
        .page();
      return new Map(data.map((counts) => [counts.product.id, counts]));
    },
    enabled: productIds.length > 0,
  });

export interface RunsSearch {
  sort?: "failures";
  product?: string;
  page?: number;
}

export const parseRunsSearch = (given: Record<string, unknown>): RunsSearch =>
  ({
    ...defined({
      sort: oneOf(given["sort"], ["failures"] as const),
      product: textOf(given["product"], 100),
    }),
    ...pageNumber(given),
  }) as RunsSearch;

/** The query of GET /products/runs. */
export const runsRequest = ({ product, ...search }: RunsSearch) =>
  defined({ ...search, productIds: product });

export const runCountsQuery = (search: RunsSearch) =>
  queryOptions({
    queryKey: ["studio", "runs", search],
    queryFn: ({ signal }) =>
      stoa.products.runCounts({ ...runsRequest(search), ...STUDIO_LIST }, { signal }).page(),
  });

const timezone = Intl.DateTimeFormat().resolvedOptions().timeZone;
export const LAST_DAYS = 30;

/** YYYY-MM-DD here, so many days ago. */
const dayHere = (daysAgo: number): string => {
  const day = new Date();
  day.setDate(day.getDate() - daysAgo);
  return [day.getFullYear(), day.getMonth() + 1, day.getDate()]
    .map((part) => String(part).padStart(2, "0"))
    .join("-");
};

/** Of the last 30 days with today, by the days of this browser's time zone. */
export const lastDaysQuery = queryOptions({
  queryKey: ["studio", "last-days"],
  queryFn: async ({ signal }) =>
    await stoa.analytics.revenue(
      // By currency, not by product as by default: no breakdown is shown, and this one costs nothing.
      { startDate: dayHere(LAST_DAYS - 1), endDate: dayHere(0), timezone, groupBy: "currency" },
      { signal },
    ),
});

/** A product whose runs fail more often than this needs a look. */
const FAILING_SHARE = 0.1;

/** What waits for the seller. */
export const tasksQuery = queryOptions({
  queryKey: ["studio", "tasks"],
  queryFn: async ({ client, signal }) => {
    const [refunds, reviews, rejected, suspended, runs, account] = await Promise.all([
      stoa.refunds.list(TASKS.refunds, { signal }).page(),
      stoa.reviews.listReceived(TASKS.reviews, { signal }).page(),
      stoa.products.list(TASKS.rejected, { signal }).page(),
      stoa.products.list(TASKS.suspended, { signal }).page(),
      stoa.products.runCounts(TASKS.runs, { signal }).page(),
      fetchPayoutAccount(client),
    ]);
    const refused = [...rejected.data, ...suspended.data];
    const details = await Promise.all(
      refused.map(async ({ id }) => await stoa.products.get(id, { content: false }, { signal })),
    );
    return {
      refunds: { ...refunds, total: refunds.meta.total },
      unanswered: reviews.meta.total,
      refused: details as ProductDetail[],
      failing: runs.data.filter(
        ({ failed30Days, last30Days }) => failed30Days > 0 && failed30Days / last30Days >= FAILING_SHARE,
      ),
      account,
    };
  },
  staleTime: 0,
});

export const balancesQuery = queryOptions({
  queryKey: ["studio", "balances"],
  queryFn: ({ signal }) => stoa.balance.get(BALANCES, { signal }).page(),
  staleTime: 5_000,
});

export const maturitiesQuery = infiniteQueryOptions({
  queryKey: ["studio", "maturities"],
  queryFn: ({ pageParam, signal }) =>
    stoa.balance.maturities({ page: pageParam, ...STUDIO_LIST }, { signal }).page(),
  initialPageParam: 1,
  getNextPageParam: (last, pages) => (last.hasMore ? pages.length + 1 : undefined),
});
