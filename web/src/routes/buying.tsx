import { ApiError } from "@stoa/sdk";
import type { QueryClient } from "@tanstack/react-query";
import { createRoute, redirect } from "@tanstack/react-router";
import { statusOf } from "../lib/errors.ts";
import { lazyPage } from "../lib/lazy-page.ts";
import { paymentMethodsQuery } from "../queries/account.ts";
import {
  isOpen,
  isOwned,
  libraryQuery,
  ORDER_FILTERS,
  type OrdersSearch,
  ordersOfProductQuery,
  ordersQuery,
  purchaseQuery,
  quoteQuery,
  recentRunsQuery,
} from "../queries/buying.ts";
import { productQuery } from "../queries/market.ts";
import { accountQuery } from "../session.ts";
import { requireAccount, rootRoute } from "./root.tsx";
import { defined, oneOf, textOf } from "./search-params.ts";

interface CheckoutSearch {
  /** The order that this checkout made. */
  order?: string;
  /** Shows the form although an order waits for its payment. */
  again?: true;
  /** A discount code, for links of sellers. */
  code?: string;
  /** What the payment provider's page for cards added to the address. */
  card?: string;
}

const checkoutRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/checkout/$productId",
  validateSearch: (given: Record<string, unknown>): CheckoutSearch =>
    defined({
      order: textOf(given["order"], 100),
      again: given["again"] ? true : undefined,
      code: textOf(given["code"], 100),
      card: textOf(given["card"], 255),
    }),
  loaderDeps: ({ search: { order, again } }) => ({ order, again }),
  loader: ({ context: { queryClient }, params: { productId }, deps }) =>
    loadCheckout(queryClient, productId, deps),
  component: lazyPage(() => import("../pages/buying/checkout.tsx")),
});

/**
 * Looks at the orders before the product: reading a product that the buyer has counts as its first use, which ends the instant refund.
 * So the product is read only for a sale.
 */
async function loadCheckout(
  queryClient: QueryClient,
  productId: string,
  { order, again }: CheckoutSearch,
): Promise<void> {
  const account = await queryClient.ensureQueryData(accountQuery);
  if (account === null) {
    await queryClient.ensureQueryData(productQuery(productId));
    return;
  }
  const shown = order === undefined ? null : await findPurchase(queryClient, order);
  if (shown !== null && (isOwned(shown) || isOpen(shown))) return;
  const { data: orders } = await queryClient.fetchQuery(ordersOfProductQuery(productId));
  const present = orders.find(isOwned) ?? (again ? undefined : orders.find(isOpen));
  const isUnknown = order !== undefined && shown === null;
  if (present || isUnknown)
    throw redirect({
      to: "/checkout/$productId",
      params: { productId },
      search: present ? { order: present.orderId } : {},
      replace: true,
    });
  const loadQuote = async () => {
    const product = await queryClient.ensureQueryData(productQuery(productId));
    // The form shows why there is no quote.
    if (product.access.reason !== "author")
      await queryClient.prefetchQuery(quoteQuery({ productId }, account.country));
  };
  await Promise.all([loadQuote(), queryClient.ensureQueryData(paymentMethodsQuery)]);
}

/** null: a mistyped address, or another person's order. */
async function findPurchase(queryClient: QueryClient, orderId: string) {
  try {
    return await queryClient.fetchQuery({ ...purchaseQuery(orderId), staleTime: 0 });
  } catch (error) {
    if (error instanceof ApiError && statusOf(error) === 404) return null;
    throw error;
  }
}

export interface LibrarySearch {
  show?: "prompts" | "workflows" | "updates" | "refundable";
  sort?: "run" | "title";
  q?: string;
}

const libraryRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/library",
  validateSearch: (given: Record<string, unknown>): LibrarySearch =>
    defined({
      show: oneOf(given["show"], ["prompts", "workflows", "updates", "refundable"] as const),
      sort: oneOf(given["sort"], ["run", "title"] as const),
      q: textOf(given["q"], 200),
    }),
  beforeLoad: requireAccount,
  loader: ({ context: { queryClient } }) =>
    Promise.all([
      queryClient.ensureInfiniteQueryData(libraryQuery),
      queryClient.ensureQueryData(recentRunsQuery),
    ]),
  component: lazyPage(() => import("../pages/buying/library.tsx")),
});

const ordersRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/orders",
  validateSearch: (given: Record<string, unknown>): OrdersSearch => {
    const page = Number(given["page"]);
    return defined({
      status: oneOf(given["status"], ORDER_FILTERS),
      page: Number.isInteger(page) && page >= 2 && page <= 10_000 ? page : undefined,
    });
  },
  beforeLoad: requireAccount,
  loaderDeps: ({ search }) => search,
  loader: ({ context: { queryClient }, deps }) => queryClient.ensureQueryData(ordersQuery(deps)),
  component: lazyPage(() => import("../pages/buying/orders.tsx")),
});

const orderRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/orders/$orderId",
  beforeLoad: requireAccount,
  loader: ({ context: { queryClient }, params }) =>
    queryClient.ensureQueryData(purchaseQuery(params.orderId)),
  component: lazyPage(() => import("../pages/buying/order.tsx")),
});

export const buyingRoutes = [checkoutRoute, libraryRoute, ordersRoute, orderRoute] as const;
