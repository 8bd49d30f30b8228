import type { QuotePurchase } from "@stoa/sdk";
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";
import { LIBRARY, ORDERS_PER_PAGE, ordersOfProduct, RECENT_RUNS } from "../member-requests.ts";

/** Statuses of an order whose product the buyer has. */
const OWNED_STATUSES: ReadonlySet<string> = new Set(["completed", "partially_refunded", "disputed"]);
/** Statuses of an order that is not paid yet. */
const OPEN_STATUSES: ReadonlySet<string> = new Set(["pending", "requires_action"]);

export const isOwned = ({ status }: { status: string }): boolean => OWNED_STATUSES.has(status);
export const isOpen = ({ status }: { status: string }): boolean => OPEN_STATUSES.has(status);

export const ORDER_FILTERS = [
  "completed",
  "requires_action",
  "pending",
  "failed",
  "partially_refunded",
  "refunded",
  "disputed",
  "canceled",
] as const;

export interface OrdersSearch {
  status?: (typeof ORDER_FILTERS)[number];
  page?: number;
}

/** The most that a page of the API has. */
const MAX_LIMIT = 100;

export const ordersQuery = (search: OrdersSearch) => {
  const query = { ...search, limit: ORDERS_PER_PAGE };
  return queryOptions({
    queryKey: ["purchases", "orders", query],
    queryFn: ({ signal }) => stoa.purchases.list(query, { signal }).page(),
  });
};

export const libraryQuery = infiniteQueryOptions({
  queryKey: ["purchases", "library"],
  queryFn: ({ pageParam, signal }) => stoa.purchases.list({ ...LIBRARY, page: pageParam }, { signal }).page(),
  initialPageParam: 1,
  getNextPageParam: (last, pages) => (last.hasMore ? pages.length + 1 : undefined),
});

/** The caller's orders of a product, newest first. */
export const ordersOfProductQuery = (productId: string) =>
  queryOptions({
    queryKey: ["purchases", "of-product", productId],
    queryFn: ({ signal }) => stoa.purchases.list(ordersOfProduct(productId), { signal }).page(),
    staleTime: 0,
  });

export const purchaseQuery = (orderId: string) =>
  queryOptions({
    queryKey: ["purchases", "one", orderId],
    queryFn: async ({ signal }) => await stoa.purchases.get(orderId, { signal }),
  });

/** What a purchase would charge now. `country`: of the account; tax depends on it. */
export const quoteQuery = (terms: QuotePurchase, country: string | null) =>
  queryOptions({
    queryKey: ["purchases", "quote", terms, country],
    queryFn: async ({ signal }) => await stoa.purchases.quote(terms, { signal }),
    staleTime: 5_000,
  });

/** The newest runs of the caller, for the library. */
export const recentRunsQuery = queryOptions({
  queryKey: ["executions", "recent"],
  queryFn: ({ signal }) => stoa.ai.executions.list(RECENT_RUNS, { signal }).page(),
});

/** The caller's review of a product, if it is among the newest 100; null: none. */
export const ownReviewQuery = (productId: string, userId: string) =>
  queryOptions({
    queryKey: ["product", productId, "reviews", "own", userId],
    queryFn: async ({ signal }) => {
      const { data } = await stoa.reviews.list(productId, { limit: MAX_LIMIT }, { signal }).page();
      return data.find(({ author }) => author.id === userId) ?? null;
    },
  });
