import { queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";
import { STUDIO_LIST } from "../member-requests.ts";
import { defined, flag, oneOf, pageNumber, textOf } from "../routes/search-params.ts";

// Apart from selling.ts, which the first view loads with the routes. Each page here checks its search parameters when it is loaded.

export const SALE_STATUSES = ["completed", "partially_refunded", "refunded", "disputed"] as const;
const DAY = /^\d{4}-\d{2}-\d{2}$/;

export interface SalesSearch {
  status?: (typeof SALE_STATUSES)[number];
  product?: string;
  /** The first and the last day, of this browser's time zone. */
  from?: string;
  to?: string;
  /** A referral code. */
  code?: string;
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
    code: textOf(given["code"], 100),
  }) as SalesSearch),
  ...pageNumber(given),
});

const startOf = (day: string, plusDays = 0): string => {
  const date = new Date(`${day}T00:00:00`);
  date.setDate(date.getDate() + plusDays);
  return date.toISOString();
};

/** The query of GET /sales. */
export const salesRequest = ({ status, product, from, to, code, page }: SalesSearch) =>
  defined({
    status,
    productId: product,
    referralCode: code,
    from: from === undefined ? undefined : startOf(from),
    to: to === undefined ? undefined : startOf(to, 1),
    page,
  });

/** `referred`: only those with a referral code. */
export const salesQuery = (search: SalesSearch, referred?: { referred: true }) => {
  const query = { ...salesRequest(search), ...referred, ...STUDIO_LIST };
  return queryOptions({
    queryKey: ["sales", "list", query],
    queryFn: ({ signal }) => stoa.sales.list(query, { signal }).page(),
  });
};

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
  product?: string;
  page?: number;
}

export const parseRefundsSearch = (given: Record<string, unknown>): RefundsSearch => ({
  ...(defined({
    status: oneOf(given["status"], REFUND_STATUSES),
    product: textOf(given["product"], 100),
  }) as RefundsSearch),
  ...pageNumber(given),
});

/** The query of a list of the API that filters by product. */
export const ofProduct = <Search extends { product?: string }>({ product, ...search }: Search) => ({
  ...search,
  ...(product !== undefined && { productId: product }),
});

export const refundsQuery = (search: RefundsSearch) => {
  const query = { ...ofProduct(search), role: "seller" as const, ...STUDIO_LIST };
  return queryOptions({
    queryKey: ["refunds", "list", query],
    queryFn: ({ signal }) => stoa.refunds.list(query, { signal }).page(),
    staleTime: 5_000,
  });
};

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

export const receivedReviewsQuery = (search: ReviewsSearch) => {
  const query = { ...ofProduct(search), ...STUDIO_LIST };
  return queryOptions({
    queryKey: ["reviews", "received", query],
    queryFn: ({ signal }) => stoa.reviews.listReceived(query, { signal }).page(),
    staleTime: 5_000,
  });
};

export const DISCOUNT_STATUSES = ["active", "scheduled", "ended", "used_up"] as const;

export interface DiscountsSearch {
  status?: (typeof DISCOUNT_STATUSES)[number];
  /** Codes that apply to it. */
  product?: string;
  page?: number;
  create?: true;
  edit?: string;
}

export const parseDiscountsSearch = (given: Record<string, unknown>): DiscountsSearch => ({
  ...(defined({
    status: oneOf(given["status"], DISCOUNT_STATUSES),
    product: textOf(given["product"], 100),
    edit: textOf(given["edit"], 100),
  }) as DiscountsSearch),
  ...flag(given, "create"),
  ...pageNumber(given),
});

export const discountCodesQuery = ({ create: _, edit: _edit, ...search }: DiscountsSearch) => {
  const query = { ...ofProduct(search), ...STUDIO_LIST };
  return queryOptions({
    queryKey: ["discount-codes", "list", query],
    queryFn: ({ signal }) => stoa.discountCodes.list(query, { signal }).page(),
    staleTime: 5_000,
  });
};
