import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "../lib/lazy-page.ts";
import {
  grantsQuery,
  notificationsQuery,
  paymentMethodsQuery,
  planPaymentsQuery,
  preferencesQuery,
  profileQuery,
  providerKeysQuery,
  referralQuery,
  sessionsQuery,
  signInProvidersQuery,
  subscriptionQuery,
  twoFactorQuery,
  usageQuery,
} from "../queries/account.ts";
import { requireAccount, rootRoute } from "./root.tsx";
import { defined, flag, pageNumber, textOf } from "./search-params.ts";

const accountRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/account",
  beforeLoad: requireAccount,
  component: lazyPage(() => import("../components/layout/shell.tsx"), "AccountShell"),
});

const profileRoute = createRoute({
  getParentRoute: () => accountRoute,
  path: "/",
  loader: ({ context: { queryClient } }) => queryClient.fetchQuery(profileQuery),
  component: lazyPage(() => import("../pages/account/profile.tsx")),
});

const securityRoute = createRoute({
  getParentRoute: () => accountRoute,
  path: "/security",
  validateSearch: (search) => ({ ...pageNumber(search), ...flag(search, "setUp") }),
  loaderDeps: ({ search: { page } }) => ({ page }),
  loader: ({ context: { queryClient }, deps: { page } }) =>
    Promise.all([
      queryClient.ensureQueryData(twoFactorQuery),
      queryClient.ensureQueryData(sessionsQuery(page)),
      queryClient.ensureQueryData(signInProvidersQuery),
    ]),
  component: lazyPage(() => import("../pages/account/security.tsx")),
});

const connectedAppsRoute = createRoute({
  getParentRoute: () => accountRoute,
  path: "/connected-apps",
  validateSearch: pageNumber,
  loaderDeps: ({ search }) => search,
  loader: ({ context: { queryClient }, deps: { page } }) => queryClient.ensureQueryData(grantsQuery(page)),
  component: lazyPage(() => import("../pages/account/connected-apps.tsx")),
});

const planRoute = createRoute({
  getParentRoute: () => accountRoute,
  path: "/plan",
  validateSearch: pageNumber,
  loaderDeps: ({ search }) => search,
  loader: ({ context: { queryClient }, deps: { page } }) =>
    Promise.all([
      queryClient.ensureQueryData(subscriptionQuery),
      queryClient.ensureQueryData(usageQuery),
      queryClient.ensureQueryData(planPaymentsQuery(page)),
      queryClient.ensureQueryData(paymentMethodsQuery),
    ]),
  component: lazyPage(() => import("../pages/account/plan.tsx")),
});

const paymentMethodsRoute = createRoute({
  getParentRoute: () => accountRoute,
  path: "/payment-methods",
  validateSearch: (search): { create?: true; card?: string } =>
    defined({ ...flag(search, "create"), card: textOf(search["card"], 255) }),
  loader: ({ context: { queryClient } }) => queryClient.ensureQueryData(paymentMethodsQuery),
  component: lazyPage(() => import("../pages/account/payment-methods.tsx")),
});

const providerKeysRoute = createRoute({
  getParentRoute: () => accountRoute,
  path: "/provider-keys",
  validateSearch: (search) => flag(search, "create"),
  loader: ({ context: { queryClient } }) => queryClient.ensureQueryData(providerKeysQuery),
  component: lazyPage(() => import("../pages/account/provider-keys.tsx")),
});

const preferencesRoute = createRoute({
  getParentRoute: () => accountRoute,
  path: "/notifications",
  loader: ({ context: { queryClient } }) => queryClient.ensureQueryData(preferencesQuery),
  component: lazyPage(() => import("../pages/account/notification-preferences.tsx")),
});

const referralRoute = createRoute({
  getParentRoute: () => accountRoute,
  path: "/referral",
  loader: ({ context: { queryClient } }) => queryClient.ensureQueryData(referralQuery),
  component: lazyPage(() => import("../pages/account/referral.tsx")),
});

const dataRoute = createRoute({
  getParentRoute: () => accountRoute,
  path: "/data",
  validateSearch: (search) => flag(search, "close"),
  component: lazyPage(() => import("../pages/account/data.tsx")),
});

export const accountRoutes = accountRoute.addChildren([
  profileRoute,
  securityRoute,
  connectedAppsRoute,
  planRoute,
  paymentMethodsRoute,
  providerKeysRoute,
  preferencesRoute,
  referralRoute,
  dataRoute,
]);

export const notificationsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/notifications",
  beforeLoad: requireAccount,
  validateSearch: (search) => ({ ...pageNumber(search), ...flag(search, "unread") }),
  loaderDeps: ({ search }) => search,
  loader: ({ context: { queryClient }, deps }) => queryClient.ensureQueryData(notificationsQuery(deps)),
  component: lazyPage(() => import("../pages/account/notifications.tsx")),
});
