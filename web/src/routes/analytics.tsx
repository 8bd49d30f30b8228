import { createRoute } from "@tanstack/react-router";
import { preloadTimelineChart } from "../components/analytics/lazy-timeline-chart.ts";
import { lazyPage } from "../lib/lazy-page.ts";
import { parseAnalyticsSearch, parseEntriesSearch, proofQuery, reportQuery } from "../queries/analytics.ts";
import { accountQuery, canReadAnalytics } from "../session.ts";
import { studioShellRoute } from "./studio-shell.ts";

const overviewRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio/analytics",
  validateSearch: parseAnalyticsSearch,
  // Without loaderDeps: another span keeps the figures until those of the new one are there.
  loader: async ({ context: { queryClient }, location: { search: given } }) => {
    if (!canReadAnalytics(await queryClient.ensureQueryData(accountQuery))) return;
    // Not awaited: the figures do not wait for the chart.
    void preloadTimelineChart();
    await queryClient.prefetchQuery(reportQuery(parseAnalyticsSearch(given)));
  },
  component: lazyPage(() => import("../pages/analytics/analytics.tsx")),
});

const entriesRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio/analytics/entries",
  validateSearch: parseEntriesSearch,
  loader: async ({ context: { queryClient }, location: { search: given } }) => {
    if (!canReadAnalytics(await queryClient.ensureQueryData(accountQuery))) return;
    await queryClient.prefetchQuery(proofQuery(parseEntriesSearch(given)));
  },
  component: lazyPage(() => import("../pages/analytics/entries.tsx")),
});

export const analyticsRoutes = [overviewRoute, entriesRoute] as const;
