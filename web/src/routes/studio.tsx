import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "../lib/lazy-page.ts";
import { parseProductsSearch, parseRunsSearch } from "../queries/studio.ts";
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
  component: lazyPage(() => import("../pages/studio/products.tsx")),
});

const runsRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio/runs",
  validateSearch: parseRunsSearch,
  component: lazyPage(() => import("../pages/studio/product-runs.tsx")),
});

export const studioRoutes = [overviewRoute, productsRoute, runsRoute] as const;
