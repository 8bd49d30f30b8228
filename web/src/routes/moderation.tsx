import { createRoute } from "@tanstack/react-router";
import { PaneError } from "../components/page-error.tsx";
import { SkeletonRows } from "../components/skeleton.tsx";
import { lazyPage } from "../lib/lazy-page.ts";
import type { QueueSearch, ReviewsSearch, StatsSearch } from "../queries/moderation.ts";
import { adminShellRoute } from "./admin-shell.ts";
import { rawSearch } from "./search-params.ts";

// In a file of their own: visitors of the market do not load what administrators ask for.
const queries = () => import("../queries/moderation.ts");

import { administrationRoutes } from "./administration.tsx";

const overviewRoute = createRoute({
  getParentRoute: () => adminShellRoute,
  path: "/admin",
  validateSearch: (given): StatsSearch => rawSearch(given),
  loader: async ({ context: { queryClient }, location: { search } }) => {
    const { parseStatsSearch, statsQuery, waitingQuery } = await queries();
    await Promise.all([
      queryClient.ensureQueryData(statsQuery(parseStatsSearch(search))),
      queryClient.ensureQueryData(waitingQuery),
    ]);
  },
  component: lazyPage(() => import("../pages/moderation/overview.tsx")),
});

const queueRoute = createRoute({
  getParentRoute: () => adminShellRoute,
  path: "/admin/moderation",
  validateSearch: (given): QueueSearch => rawSearch(given),
  // Without loaderDeps: a change of a filter keeps the page, and the queue shows that it loads.
  loader: async ({ context: { queryClient }, location: { search } }) => {
    const { queueQuery, parseQueueSearch } = await queries();
    await queryClient.ensureQueryData(queueQuery(parseQueueSearch(search)));
  },
  component: lazyPage(() => import("../pages/moderation/moderation.tsx")),
});

const productRoute = createRoute({
  getParentRoute: () => queueRoute,
  path: "/$productId",
  loader: async ({ context: { queryClient }, params: { productId } }) => {
    const { checksQuery, moderatedQuery, reviewedQuery } = await queries();
    await Promise.all([
      queryClient.ensureQueryData(moderatedQuery(productId)),
      queryClient.ensureQueryData(reviewedQuery(productId)),
      queryClient.ensureQueryData(checksQuery(productId)),
    ]);
  },
  component: lazyPage(() => import("../pages/moderation/product.tsx")),
  pendingComponent: SkeletonRows,
  errorComponent: PaneError,
});

const reviewsRoute = createRoute({
  getParentRoute: () => adminShellRoute,
  path: "/admin/reviews",
  validateSearch: (given): ReviewsSearch => rawSearch(given),
  loader: async ({ context: { queryClient }, location: { search } }) => {
    const { reviewsQuery, parseReviewsSearch } = await queries();
    await queryClient.ensureQueryData(reviewsQuery(parseReviewsSearch(search)));
  },
  component: lazyPage(() => import("../pages/moderation/reviews.tsx")),
});

export const moderationRoutes = [
  overviewRoute,
  queueRoute.addChildren([productRoute]),
  reviewsRoute,
  ...administrationRoutes,
] as const;
