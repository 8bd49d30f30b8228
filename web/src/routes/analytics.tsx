import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "../lib/lazy-page.ts";
import {
  entriesQuery,
  funnelQuery,
  intervalOf,
  parseAnalyticsSearch,
  parseEntriesSearch,
  revenueQuery,
  spanQuery,
} from "../queries/analytics.ts";
import { accountQuery, canReadAnalytics } from "../session.ts";
import { studioShellRoute } from "./studio-shell.ts";

const overviewRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio/analytics",
  validateSearch: parseAnalyticsSearch,
  // Without loaderDeps: another span keeps the figures until those of the new one are there.
  loader: async ({ context: { queryClient }, location: { search: given } }) => {
    if (!canReadAnalytics(await queryClient.ensureQueryData(accountQuery))) return;
    const search = parseAnalyticsSearch(given);
    const span = spanQuery(search);
    await Promise.all([
      queryClient.prefetchQuery(revenueQuery(span, intervalOf(search), search.group ?? "product")),
      queryClient.prefetchQuery(funnelQuery(span)),
    ]);
  },
  component: lazyPage(() => import("../pages/analytics/analytics.tsx")),
});

const entriesRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio/analytics/entries",
  validateSearch: parseEntriesSearch,
  loader: async ({ context: { queryClient }, location: { search: given } }) => {
    if (!canReadAnalytics(await queryClient.ensureQueryData(accountQuery))) return;
    const search = parseEntriesSearch(given);
    const { figure = "netRevenue", page = 1 } = search;
    await queryClient.prefetchQuery(entriesQuery(spanQuery(search), figure, page));
  },
  component: lazyPage(() => import("../pages/analytics/entries.tsx")),
});

export const analyticsRoutes = [overviewRoute, entriesRoute] as const;
