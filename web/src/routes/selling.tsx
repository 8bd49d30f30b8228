import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "../lib/lazy-page.ts";
import {
  parseRefundsSearch,
  parseReviewsSearch,
  parseSalesSearch,
  payoutQuery,
  refundQuery,
  saleQuery,
} from "../queries/selling.ts";
import { flag, pageNumber, textOf } from "./search-params.ts";
import { studioShellRoute } from "./studio-shell.ts";

const salesRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio/sales",
  validateSearch: parseSalesSearch,
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
  validateSearch: parseRefundsSearch,
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
  validateSearch: parseReviewsSearch,
  component: lazyPage(() => import("../pages/selling/reviews.tsx")),
});

const discountsRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio/discounts",
  validateSearch: (given: Record<string, unknown>): { create?: true; edit?: string; page?: number } => {
    const edit = textOf(given["edit"], 100);
    return { ...flag(given, "create"), ...(edit !== undefined && { edit }), ...pageNumber(given) };
  },
  component: lazyPage(() => import("../pages/selling/discounts.tsx")),
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
  payoutsRoute,
  payoutRoute,
] as const;
