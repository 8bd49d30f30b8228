import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "../lib/lazy-page.ts";
import { ownProductsQuery, parseProductsSearch, parseRunsSearch, runCountsQuery } from "../queries/studio.ts";
import { accountQuery, canSell } from "../session.ts";
import { studioShellRoute } from "./studio-shell.ts";

const overviewRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio",
  component: lazyPage(() => import("../pages/studio/overview.tsx")),
});

const productsRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio/products",
  validateSearch: parseProductsSearch,
  // Not awaited: the page shows at once, with the rows of the filter before, or with those that it waits for.
  loader: ({ context: { queryClient }, location: { search: given } }) =>
    void queryClient.prefetchQuery(ownProductsQuery(parseProductsSearch(given))),
  component: lazyPage(() => import("../pages/studio/products.tsx")),
});

const runsRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio/runs",
  validateSearch: parseRunsSearch,
  loader: async ({ context: { queryClient }, location: { search: given } }) => {
    if (!canSell(await queryClient.ensureQueryData(accountQuery))) return;
    void queryClient.prefetchQuery(runCountsQuery(parseRunsSearch(given)));
  },
  component: lazyPage(() => import("../pages/studio/product-runs.tsx")),
});

export const studioRoutes = [overviewRoute, productsRoute, runsRoute] as const;
