import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "../lib/lazy-page.ts";
import type {
  AuditSearch,
  ClientsSearch,
  DisputesSearch,
  OrdersSearch,
  PayoutsSearch,
  RefundsSearch,
  UsersSearch,
  WebhooksSearch,
} from "../queries/administration.ts";
import { adminShellRoute } from "./admin-shell.ts";
import { rawSearch } from "./search-params.ts";

// In a file of their own: visitors of the market do not load what administrators ask for.
const queries = () => import("../queries/administration.ts");

// Without loaderDeps: a change of a filter keeps the page, and the list shows that it loads.

const usersRoute = createRoute({
  getParentRoute: () => adminShellRoute,
  path: "/admin/users",
  validateSearch: (given): UsersSearch => rawSearch(given),
  loader: async ({ context: { queryClient }, location: { search } }) => {
    const { usersQuery, parseUsersSearch } = await queries();
    await queryClient.ensureQueryData(usersQuery(parseUsersSearch(search)));
  },
  component: lazyPage(() => import("../pages/administration/users.tsx")),
});

const userRoute = createRoute({
  getParentRoute: () => adminShellRoute,
  path: "/admin/users/$userId",
  loader: async ({ context: { queryClient }, params: { userId } }) => {
    const { userQuery, historyQuery } = await queries();
    await Promise.all([
      queryClient.ensureQueryData(userQuery(userId)),
      queryClient.ensureQueryData(historyQuery(userId)),
    ]);
  },
  component: lazyPage(() => import("../pages/administration/user.tsx")),
});

const clientsRoute = createRoute({
  getParentRoute: () => adminShellRoute,
  path: "/admin/oauth-clients",
  validateSearch: (given): ClientsSearch => rawSearch(given),
  loader: async ({ context: { queryClient }, location: { search } }) => {
    const { clientsQuery, parseClientsSearch } = await queries();
    await queryClient.ensureQueryData(clientsQuery(parseClientsSearch(search)));
  },
  component: lazyPage(() => import("../pages/administration/oauth-clients.tsx")),
});

const auditRoute = createRoute({
  getParentRoute: () => adminShellRoute,
  path: "/admin/audit",
  validateSearch: (given): AuditSearch => rawSearch(given),
  loader: async ({ context: { queryClient }, location: { search } }) => {
    const { auditQuery, parseAuditSearch } = await queries();
    await queryClient.ensureQueryData(auditQuery(parseAuditSearch(search)));
  },
  component: lazyPage(() => import("../pages/administration/audit.tsx")),
});

const ordersRoute = createRoute({
  getParentRoute: () => adminShellRoute,
  path: "/admin/orders",
  validateSearch: (given): OrdersSearch => rawSearch(given),
  loader: async ({ context: { queryClient }, location: { search } }) => {
    const { ordersQuery, parseOrdersSearch } = await queries();
    await queryClient.ensureQueryData(ordersQuery(parseOrdersSearch(search)));
  },
  component: lazyPage(() => import("../pages/administration/orders.tsx")),
});

const orderRoute = createRoute({
  getParentRoute: () => adminShellRoute,
  path: "/admin/orders/$orderId",
  loader: async ({ context: { queryClient }, params: { orderId } }) => {
    const { orderQuery, historyQuery } = await queries();
    await Promise.all([
      queryClient.ensureQueryData(orderQuery(orderId)),
      queryClient.ensureQueryData(historyQuery(orderId)),
    ]);
  },
  component: lazyPage(() => import("../pages/administration/order.tsx")),
});

const refundsRoute = createRoute({
  getParentRoute: () => adminShellRoute,
  path: "/admin/refunds",
  validateSearch: (given): RefundsSearch => rawSearch(given),
  loader: async ({ context: { queryClient }, location: { search } }) => {
    const { refundsQuery, parseRefundsSearch } = await queries();
    await queryClient.ensureQueryData(refundsQuery(parseRefundsSearch(search)));
  },
  component: lazyPage(() => import("../pages/administration/refunds.tsx")),
});

const disputesRoute = createRoute({
  getParentRoute: () => adminShellRoute,
  path: "/admin/disputes",
  validateSearch: (given): DisputesSearch => rawSearch(given),
  loader: async ({ context: { queryClient }, location: { search } }) => {
    const { disputesQuery, parseDisputesSearch } = await queries();
    await queryClient.ensureQueryData(disputesQuery(parseDisputesSearch(search)));
  },
  component: lazyPage(() => import("../pages/administration/disputes.tsx")),
});

const payoutsRoute = createRoute({
  getParentRoute: () => adminShellRoute,
  path: "/admin/payouts",
  validateSearch: (given): PayoutsSearch => rawSearch(given),
  loader: async ({ context: { queryClient }, location: { search } }) => {
    const { payoutsQuery, parsePayoutsSearch } = await queries();
    await queryClient.ensureQueryData(payoutsQuery(parsePayoutsSearch(search)));
  },
  component: lazyPage(() => import("../pages/administration/payouts.tsx")),
});

const webhooksRoute = createRoute({
  getParentRoute: () => adminShellRoute,
  path: "/admin/webhooks",
  validateSearch: (given): WebhooksSearch => rawSearch(given),
  loader: async ({ context: { queryClient }, location: { search } }) => {
    const { allWebhooksQuery, parseWebhooksSearch } = await queries();
    await queryClient.ensureQueryData(allWebhooksQuery(parseWebhooksSearch(search)));
  },
  component: lazyPage(() => import("../pages/administration/webhooks.tsx")),
});

/** Accounts, money and webhooks of the administration. */
export const administrationRoutes = [
  usersRoute,
  userRoute,
  clientsRoute,
  auditRoute,
  ordersRoute,
  orderRoute,
  refundsRoute,
  disputesRoute,
  payoutsRoute,
  webhooksRoute,
] as const;
