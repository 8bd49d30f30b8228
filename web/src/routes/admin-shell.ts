import { createRoute, notFound } from "@tanstack/react-router";
import { lazyPage } from "../lib/lazy-page.ts";
import { accountQuery, isAdmin } from "../session.ts";
import { requireAccount, rootRoute } from "./root.tsx";

/** The parent of the pages under `/admin`. For everybody else they do not exist. */
export const adminShellRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: "admin-shell",
  beforeLoad: async (options) => {
    await requireAccount(options);
    if (!isAdmin(await options.context.queryClient.ensureQueryData(accountQuery))) throw notFound();
  },
  component: lazyPage(() => import("../components/layout/shell.tsx"), "AdminShell"),
});
