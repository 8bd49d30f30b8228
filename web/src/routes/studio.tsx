import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "../lib/lazy-page.ts";
import { studioShellRoute } from "./studio-shell.ts";

const overviewRoute = createRoute({
  getParentRoute: () => studioShellRoute,
  path: "/studio",
  component: lazyPage(() => import("../pages/studio/overview.tsx")),
});

export const studioRoutes = [overviewRoute];
