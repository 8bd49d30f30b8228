import type { AdminOrder, ModeratedProduct } from "@stoa/sdk";
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";
import { choiceParam, textParam } from "../lib/search-fields.ts";
import { pageNumber } from "../routes/search-params.ts";

/** Rows of a page of a list. */
export const ROWS = 30;

type Given = Record<string, unknown>;

export const STATS_PERIODS = ["7d", "30d", "365d"] as const;
export interface StatsSearch {
  period?: (typeof STATS_PERIODS)[number];
}
export const parseStatsSearch = (given: Given): StatsSearch => choiceParam(given, "period", STATS_PERIODS);

const API_PERIODS = { "7d": "week", "30d": "month", "365d": "year" } as const;

export const statsQuery = ({ period = "30d" }: StatsSearch) =>
  queryOptions({
    queryKey: ["admin", "stats", period],
    queryFn: async ({ signal }) => await stoa.admin.stats.get({ period: API_PERIODS[period] }, { signal }),
    placeholderData: keepPreviousData,
  });

/** What waits for a decision of a person. */
export const waitingQuery = queryOptions({
  queryKey: ["admin", "waiting"],
  queryFn: async ({ signal }) => {
    const first = { limit: 1 };
    const { admin } = stoa;
    const [review, reported, reviews, inquiries, disputes, payouts, webhooks] = await Promise.all([
      admin.products.list({ ...first, status: "pending_review" }, { signal }).page(),
      admin.products.list({ ...first, reported: true }, { signal }).page(),
      admin.reviews.list({ ...first, status: "reported" }, { signal }).page(),
      admin.disputes.list({ ...first, status: "inquiry" }, { signal }).page(),
      admin.disputes.list({ ...first, status: "open" }, { signal }).page(),
      admin.payouts.list({ ...first, status: "pending" }, { signal }).page(),
      admin.webhooks.list({ ...first, status: "failing" }, { signal }).page(),
    ]);
    return {
      review: review.meta,
      reported: reported.meta,
      reviews: reviews.meta,
      disputes: { total: inquiries.meta.total + disputes.meta.total },
      payouts: payouts.meta,
      webhooks: webhooks.meta,
    };
  },
});

export const QUEUES = ["waiting", "reported", "suspended", "rejected"] as const;
export type Queue = (typeof QUEUES)[number];
const DIFF_FORMS = ["words", "lines", "rendered", "steps"] as const;

export interface QueueSearch {
  queue?: Queue;
  search?: string;
  /** The id of a seller. */
  seller?: string;
  page?: number;
  diff?: (typeof DIFF_FORMS)[number];
}

export const parseQueueSearch = (given: Given): QueueSearch => ({
  ...choiceParam(given, "queue", QUEUES),
  ...textParam(given, "search"),
  ...textParam(given, "seller"),
  ...pageNumber(given),
  ...choiceParam(given, "diff", DIFF_FORMS),
});

const QUEUE_FILTERS = {
  waiting: { status: "pending_review", order: "oldest" },
  reported: { reported: true, order: "oldest" },
  suspended: { status: "suspended", order: "newest" },
  rejected: { status: "rejected", order: "newest" },
} as const satisfies Record<Queue, object>;

export const queueFilters = ({ queue = "waiting", search, seller, page }: QueueSearch) => ({
  ...(seller === undefined || queue !== "waiting" ? QUEUE_FILTERS[queue] : {}),
  ...(search !== undefined && { search }),
  ...(seller !== undefined && { author: seller }),
  ...(page !== undefined && { page }),
});

export const queueQuery = (search: QueueSearch) =>
  queryOptions({
    queryKey: ["admin", "products", queueFilters(search)],
    queryFn: ({ signal }) =>
      stoa.admin.products.list({ ...queueFilters(search), limit: ROWS }, { signal }).page(),
  });

/** The product as moderators list it; undefined if it is gone. */
export const moderatedQuery = (id: string) =>
  queryOptions({
    queryKey: ["admin", "product", id],
    queryFn: async ({ signal }): Promise<ModeratedProduct | null> => {
      const { data } = await stoa.admin.products.list({ search: id, limit: 1 }, { signal }).page();
      return data.find((product) => product.id === id) ?? null;
    },
  });

/** With the version that an approval names. */
export const reviewedQuery = (id: string) =>
  queryOptions({
    queryKey: ["admin", "product", id, "content"],
    queryFn: async ({ signal }) => {
      const { data, headers } = await stoa.products.get(id, {}, { signal }).withResponse();
      return { ...data, etag: headers.get("etag") };
    },
    // An approval is about what the moderator sees: it must not change by itself.
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    gcTime: 0,
  });

export const checksQuery = (id: string) =>
  queryOptions({
    queryKey: ["admin", "product", id, "checks"],
    queryFn: async ({ signal }) => await stoa.admin.products.checks(id, { signal }),
    refetchOnWindowFocus: false,
  });

/** Of the seller: orders by what became of them. */
export const sellerRecordQuery = (seller: string) =>
  queryOptions({
    queryKey: ["admin", "seller-record", seller],
    queryFn: async ({ signal }) => {
      const count = async (status?: AdminOrder["status"]) =>
        (await stoa.admin.orders.list({ seller, limit: 1, ...(status && { status }) }, { signal }).page())
          .meta;
      const [user, completed, refunded, partly, disputed] = await Promise.all([
        stoa.admin.users.get(seller, { signal }),
        count("completed"),
        count("refunded"),
        count("partially_refunded"),
        count("disputed"),
      ]);
      const returned = refunded.total + partly.total + disputed.total;
      return { since: user.createdAt, paid: completed.total + returned, returned };
    },
    staleTime: 60_000,
  });

export const REVIEW_STATUSES = ["reported", "hidden"] as const;
export interface ReviewsSearch {
  status?: (typeof REVIEW_STATUSES)[number];
  page?: number;
}
export const parseReviewsSearch = (given: Given): ReviewsSearch => ({
  ...choiceParam(given, "status", REVIEW_STATUSES),
  ...pageNumber(given),
});
export const reviewsQuery = (search: ReviewsSearch) =>
  queryOptions({
    queryKey: ["admin", "reviews", search],
    queryFn: ({ signal }) => stoa.admin.reviews.list({ ...search, limit: ROWS }, { signal }).page(),
  });
