import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "../lib/lazy-page.ts";
import { payoutQuery, refundQuery, saleQuery } from "../queries/selling.ts";
import type { DiscountsSearch, RefundsSearch, ReviewsSearch, SalesSearch } from "../queries/selling-lists.ts";
import { pageNumber, rawSearch } from "./search-params.ts";
import { studioShellRoute } from "./studio-shell.ts";

const salesRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio/sales",
  validateSearch: (given): SalesSearch => rawSearch(given),
  component: lazyPage(() => import("../pages/selling/sales.tsx")),
});

const saleRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio/sales/$orderId",
  loader: ({ context: { queryClient }, params }) => queryClient.ensureQueryData(saleQuery(params.orderId)),
  component: lazyPage(() => import("../pages/selling/sale.tsx")),
});

const refundsRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio/refunds",
  validateSearch: (given): RefundsSearch => rawSearch(given),
  component: lazyPage(() => import("../pages/selling/refunds.tsx")),
});

const refundRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio/refunds/$refundId",
  loader: async ({ context: { queryClient }, params }) => {
    const { orderId } = await queryClient.fetchQuery(refundQuery(params.refundId));
    await queryClient.ensureQueryData(saleQuery(orderId));
  },
  component: lazyPage(() => import("../pages/selling/refund.tsx")),
});

const reviewsRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio/reviews",
  validateSearch: (given): ReviewsSearch => rawSearch(given),
  component: lazyPage(() => import("../pages/selling/reviews.tsx")),
});

const discountsRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio/discounts",
  validateSearch: (given): DiscountsSearch => rawSearch(given),
  component: lazyPage(() => import("../pages/selling/discounts.tsx")),
});

const referralsRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio/referrals",
  validateSearch: (given): SalesSearch => rawSearch(given),
  component: lazyPage(() => import("../pages/selling/referrals.tsx")),
});

const payoutsRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio/payouts",
  validateSearch: pageNumber,
  component: lazyPage(() => import("../pages/selling/payouts.tsx")),
});

const payoutRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio/payouts/$payoutId",
  validateSearch: pageNumber,
  loader: ({ context: { queryClient }, params }) => queryClient.ensureQueryData(payoutQuery(params.payoutId)),
  component: lazyPage(() => import("../pages/selling/payout.tsx")),
});

export const sellingRoutes = [
  salesRoute,
  saleRoute,
  refundsRoute,
  refundRoute,
  reviewsRoute,
  discountsRoute,
  referralsRoute,
  payoutsRoute,
  payoutRoute,
] as const;
