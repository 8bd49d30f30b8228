import { createRoute, redirect } from "@tanstack/react-router";
import { PaneError } from "../components/page-error.tsx";
import { SkeletonRows } from "../components/skeleton.tsx";
import { lazyPage } from "../lib/lazy-page.ts";
import {
  apiKeysQuery,
  deliveriesQuery,
  deliveryQuery,
  parseDeliverySearch,
  parseEventsSearch,
  parseLogSearch,
  requestsQuery,
  webhookQuery,
  webhookStatsQuery,
  webhooksQuery,
} from "../queries/webhooks.ts";
import { requireAccount, rootRoute } from "./root.tsx";

const shellRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: "webhooks-shell",
  beforeLoad: requireAccount,
  component: lazyPage(() => import("../components/layout/shell.tsx"), "DeveloperShell"),
});

const listRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/settings/webhooks",
  loader: ({ context: { queryClient } }) => queryClient.ensureQueryData(webhooksQuery),
  component: lazyPage(() => import("../pages/webhooks/webhooks.tsx")),
});

const newRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/settings/webhooks/new",
  component: lazyPage(() => import("../pages/webhooks/webhook-new.tsx")),
});

const webhookRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/settings/webhooks/$webhookId",
  validateSearch: parseDeliverySearch,
  // Without loaderDeps: a change of a filter keeps the page, and the log shows that it loads.
  loader: ({ context: { queryClient }, params: { webhookId }, location: { search } }) =>
    Promise.all([
      queryClient.ensureQueryData(webhookQuery(webhookId)),
      queryClient.ensureQueryData(webhookStatsQuery(webhookId)),
      queryClient.prefetchQuery(deliveriesQuery(webhookId, parseDeliverySearch(search))),
    ]),
  component: lazyPage(() => import("../pages/webhooks/webhook.tsx")),
});

const deliveryRoute = createRoute({
  getParentRoute: () => webhookRoute,
  path: "/deliveries/$deliveryId",
  loader: ({ context: { queryClient }, params }) =>
    queryClient.ensureQueryData(deliveryQuery(params.deliveryId)),
  component: lazyPage(() => import("../pages/webhooks/webhook-delivery.tsx")),
  pendingComponent: SkeletonRows,
  errorComponent: PaneError,
});

/** A delivery by its id alone, such as one that was pasted. */
const deliveryAliasRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/settings/deliveries/$deliveryId",
  loader: async ({ context: { queryClient }, params: { deliveryId } }) => {
    const { endpointId: webhookId } = await queryClient.ensureQueryData(deliveryQuery(deliveryId));
    throw redirect({
      to: "/settings/webhooks/$webhookId/deliveries/$deliveryId",
      params: { webhookId, deliveryId },
      replace: true,
    });
  },
});

const editRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/settings/webhooks/$webhookId/edit",
  loader: ({ context: { queryClient }, params }) =>
    queryClient.ensureQueryData(webhookQuery(params.webhookId)),
  component: lazyPage(() => import("../pages/webhooks/webhook-edit.tsx")),
});

const debuggerRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/settings/signatures",
  validateSearch: ({
    delivery,
    attempt,
  }: Record<string, unknown>): { delivery?: string; attempt?: number } => ({
    ...(typeof delivery === "string" && { delivery }),
    ...(Number(attempt) > 0 && { attempt: Number(attempt) }),
  }),
  loaderDeps: ({ search: { delivery } }) => ({ delivery }),
  loader: async ({ context: { queryClient }, deps: { delivery } }) => {
    if (delivery !== undefined) await queryClient.ensureQueryData(deliveryQuery(delivery));
  },
  component: lazyPage(() => import("../pages/webhooks/signatures.tsx")),
});

const debuggerAliasRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/settings/webhooks/debugger",
  beforeLoad: () => {
    throw redirect({ to: "/settings/signatures" });
  },
});

const eventsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/settings/events",
  validateSearch: parseEventsSearch,
  component: lazyPage(() => import("../pages/webhooks/events.tsx")),
});

const logsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/settings/logs",
  validateSearch: parseLogSearch,
  loader: ({ context: { queryClient }, location: { search } }) =>
    Promise.all([
      queryClient.prefetchQuery(requestsQuery(parseLogSearch(search))),
      queryClient.ensureQueryData(apiKeysQuery),
    ]),
  component: lazyPage(() => import("../pages/webhooks/logs.tsx")),
});

export const webhookRoutes = shellRoute.addChildren([
  ...[
    listRoute,
    newRoute,
    editRoute,
    deliveryAliasRoute,
    debuggerAliasRoute,
    debuggerRoute,
    eventsRoute,
    logsRoute,
  ],
  webhookRoute.addChildren([deliveryRoute]),
]);
