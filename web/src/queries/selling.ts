import { queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";
import { refundsOfSale, STUDIO_LIST } from "../member-requests.ts";
import { defined, oneOf, pageNumber, textOf } from "../routes/search-params.ts";

export const SALE_STATUSES = ["completed", "partially_refunded", "refunded", "disputed"] as const;
const DAY = /^\d{4}-\d{2}-\d{2}$/;

export interface SalesSearch {
  status?: (typeof SALE_STATUSES)[number];
  product?: string;
  /** The first and the last day, of this browser's time zone. */
  from?: string;
  to?: string;
  page?: number;
}

const dayOf = (value: unknown): string | undefined => {
  const text = textOf(value, 10);
  return text !== undefined && DAY.test(text) && !Number.isNaN(Date.parse(text)) ? text : undefined;
};

export const parseSalesSearch = (given: Record<string, unknown>): SalesSearch => ({
  ...(defined({
    status: oneOf(given["status"], SALE_STATUSES),
    product: textOf(given["product"], 100),
    from: dayOf(given["from"]),
    to: dayOf(given["to"]),
  }) as SalesSearch),
  ...pageNumber(given),
});

const startOf = (day: string, plusDays = 0): string => {
  const date = new Date(`${day}T00:00:00`);
  date.setDate(date.getDate() + plusDays);
  return date.toISOString();
};

/** What the list of the API is asked for. */
export const salesRequest = ({ status, product, from, to, page }: SalesSearch) =>
  defined({
    status,
    productId: product,
    from: from === undefined ? undefined : startOf(from),
    to: to === undefined ? undefined : startOf(to, 1),
    page,
  });

export const salesQuery = (search: SalesSearch) => {
  const query = { ...salesRequest(search), ...STUDIO_LIST };
  return queryOptions({
    queryKey: ["sales", "list", query],
    queryFn: ({ signal }) => stoa.sales.list(query, { signal }).page(),
  });
};

export const saleQuery = (orderId: string) =>
  queryOptions({
    queryKey: ["sales", "one", orderId],
    queryFn: async ({ signal }) => await stoa.sales.get(orderId, { signal }),
  });

/** How often the buyer ran the product since. */
export const saleRunsQuery = (orderId: string) =>
  queryOptions({
    queryKey: ["sales", "runs", orderId],
    queryFn: async ({ signal }) => await stoa.sales.runs(orderId, { signal }),
  });

export const refundsOfSaleQuery = (orderId: string) =>
  queryOptions({
    queryKey: ["refunds", "of-sale", orderId],
    queryFn: ({ signal }) => stoa.refunds.list(refundsOfSale(orderId), { signal }).page(),
  });

export const REFUND_STATUSES = [
  "pending",
  "processing",
  "succeeded",
  "rejected",
  "canceled",
  "failed",
] as const;

export interface RefundsSearch {
  status?: (typeof REFUND_STATUSES)[number];
  page?: number;
}

export const parseRefundsSearch = (given: Record<string, unknown>): RefundsSearch => ({
  ...(defined({ status: oneOf(given["status"], REFUND_STATUSES) }) as RefundsSearch),
  ...pageNumber(given),
});

export const refundsQuery = (search: RefundsSearch) =>
  queryOptions({
    queryKey: ["refunds", "list", search],
    queryFn: ({ signal }) =>
      stoa.refunds.list({ ...search, role: "seller", ...STUDIO_LIST }, { signal }).page(),
    staleTime: 5_000,
  });

export const refundQuery = (refundId: string) =>
  queryOptions({
    queryKey: ["refunds", "one", refundId],
    queryFn: async ({ signal }) => await stoa.refunds.get(refundId, { signal }),
    staleTime: 0,
  });

export interface ReviewsSearch {
  status?: "unanswered" | "answered";
  rating?: number;
  product?: string;
  page?: number;
}

export const parseReviewsSearch = (given: Record<string, unknown>): ReviewsSearch => {
  const rating = Number(given["rating"]);
  return {
    ...(defined({
      status: oneOf(given["status"], ["unanswered", "answered"] as const),
      rating: Number.isInteger(rating) && rating >= 1 && rating <= 5 ? rating : undefined,
      product: textOf(given["product"], 100),
    }) as ReviewsSearch),
    ...pageNumber(given),
  };
};

export const receivedReviewsQuery = ({ product, ...search }: ReviewsSearch) => {
  const query = { ...search, ...(product !== undefined && { productId: product }), ...STUDIO_LIST };
  return queryOptions({
    queryKey: ["reviews", "received", query],
    queryFn: ({ signal }) => stoa.reviews.listReceived(query, { signal }).page(),
    staleTime: 5_000,
  });
};

export const discountCodesQuery = (page?: number) =>
  queryOptions({
    queryKey: ["discount-codes", "list", page],
    queryFn: ({ signal }) =>
      stoa.discountCodes.list({ ...(page !== undefined && { page }), ...STUDIO_LIST }, { signal }).page(),
    staleTime: 5_000,
  });

/** A code with the ETag of what was read, so that an edit can say which state it changes. */
export const discountCodeQuery = (id: string) =>
  queryOptions({
    queryKey: ["discount-codes", "one", id],
    queryFn: async ({ signal }) => {
      const { data, headers } = await stoa.discountCodes.get(id, { signal }).withResponse();
      return { code: data, etag: headers.get("etag") ?? "" };
    },
    staleTime: 0,
  });

export const payoutAccountQuery = queryOptions({
  queryKey: ["payouts", "account"],
  queryFn: async ({ signal }) => await stoa.payouts.account.get({ signal }),
  staleTime: 0,
});

export const payoutsQuery = (page?: number) =>
  queryOptions({
    queryKey: ["payouts", "list", page],
    queryFn: ({ signal }) =>
      stoa.payouts.list({ ...(page !== undefined && { page }), ...STUDIO_LIST }, { signal }).page(),
    staleTime: 5_000,
  });

export const payoutQuery = (payoutId: string) =>
  queryOptions({
    queryKey: ["payouts", "one", payoutId],
    queryFn: async ({ signal }) => await stoa.payouts.get(payoutId, { signal }),
    staleTime: 5_000,
  });

export const payoutItemsQuery = (payoutId: string, page?: number) =>
  queryOptions({
    queryKey: ["payouts", "items", payoutId, page],
    queryFn: ({ signal }) =>
      stoa.payouts
        .items(payoutId, { ...(page !== undefined && { page }), ...STUDIO_LIST }, { signal })
        .page(),
  });
