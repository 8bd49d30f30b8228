import { createRoute } from "@tanstack/react-router";
import { preloadTimelineChart } from "../components/analytics/lazy-timeline-chart.ts";
import { lazyPage } from "../lib/lazy-page.ts";
import { wait } from "../lib/wait.ts";
import {
  customersQuery,
  parseAnalyticsSearch,
  parseEntriesSearch,
  proofMonths,
  proofQuery,
  provenFiguresQuery,
  reportQuery,
} from "../queries/analytics.ts";
import { accountQuery, canReadAnalytics } from "../session.ts";
import { studioShellRoute } from "./studio-shell.ts";

const REST_WAIT_MS = 250;
/** React keeps a skeleton for 300 ms at least: one shown just before the figures, which take about 200 ms, would hold them back. */
const SKELETON_AFTER_MS = 400;

const overviewRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio/analytics",
  pendingMs: SKELETON_AFTER_MS,
  validateSearch: parseAnalyticsSearch,
  // Without loaderDeps: another span keeps the figures until those of the new one are there.
  loader: async ({ context: { queryClient }, location: { search: given } }) => {
    if (!canReadAnalytics(await queryClient.ensureQueryData(accountQuery))) return;
    const search = parseAnalyticsSearch(given);
    await Promise.all([
      queryClient.prefetchQuery(reportQuery(search)),
      // On a slow line, the figures do not wait for the rest. React shows a chart that comes later than its page after 300 ms. The names in
      // the filter of products come after the page: of thousands of products they cost as much as the figures.
      Promise.race([
        Promise.all([preloadTimelineChart(), queryClient.prefetchQuery(customersQuery(search))]),
        wait(REST_WAIT_MS),
      ]),
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
    if (proofMonths(search)) await queryClient.prefetchQuery(provenFiguresQuery(search));
    else await queryClient.prefetchQuery(proofQuery(search));
  },
  component: lazyPage(() => import("../pages/analytics/entries.tsx")),
});

export const analyticsRoutes = [overviewRoute, entriesRoute] as const;
