import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "../lib/lazy-page.ts";
import { requireAccount, rootRoute } from "./root.tsx";

/** The parent of the pages under `/studio` that have the sidebar. The editors have the whole width and stand under the root. */
export const studioShellRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: "studio-shell",
  beforeLoad: requireAccount,
  component: lazyPage(() => import("../components/layout/shell.tsx"), "StudioShell"),
});
