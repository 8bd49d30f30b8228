import { createRoute, redirect } from "@tanstack/react-router";
import { lazyPage } from "../lib/lazy-page.ts";
import { apiKeysQuery, callbackSecretQuery, oauthClientsQuery } from "../queries/api-access.ts";
import { requireAccount, rootRoute } from "./root.tsx";
import { flag, pageNumber } from "./search-params.ts";

const shellRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: "api-access",
  beforeLoad: requireAccount,
  component: lazyPage(() => import("../components/layout/shell.tsx"), "DeveloperShell"),
});

const apiKeysRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/settings/api",
  validateSearch: (search) => ({ ...pageNumber(search), ...flag(search, "create") }),
  loaderDeps: ({ search: { page } }) => ({ page }),
  loader: ({ context: { queryClient }, deps: { page } }) =>
    Promise.all([
      queryClient.ensureQueryData(apiKeysQuery(page)),
      queryClient.ensureQueryData(callbackSecretQuery),
    ]),
  component: lazyPage(() => import("../pages/api-access/api-keys.tsx")),
});

const oauthAppsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/settings/oauth-apps",
  validateSearch: (search) => ({ ...pageNumber(search), ...flag(search, "create") }),
  loaderDeps: ({ search: { page } }) => ({ page }),
  loader: ({ context: { queryClient }, deps: { page } }) =>
    queryClient.ensureQueryData(oauthClientsQuery(page)),
  component: lazyPage(() => import("../pages/api-access/oauth-apps.tsx")),
});

/** The developer area begins with the keys. */
export const settingsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/settings",
  beforeLoad: () => {
    throw redirect({ to: "/settings/api", replace: true });
  },
});

export const apiAccessRoutes = shellRoute.addChildren([apiKeysRoute, oauthAppsRoute]);
