import { PRODUCT, toAddress } from "./first-requests.ts";
import { flag, pageNumber } from "./routes/search-params.ts";

/**
 * The requests of the first view of members' pages, as first-requests.ts has those of public pages. What is not listed, the client requests:
 * reads that change something, such as the first use of a product, and lists whose filters depend on the present time.
 */

/** The most that a page of the API has. */
const ALL = { limit: 100 };

export const LIBRARY = ALL;
export const RECENT_RUNS = ALL;
export const RUNNABLE = ALL;
export const PAYMENT_METHODS = ALL;
export const PROVIDER_KEYS = ALL;
export const WEBHOOKS = ALL;
export const KEY_NAMES = ALL;
export const WEBHOOK_STATS = { days: 1 };
export const ROWS_PER_PAGE = 30;
export const ORDERS_PER_PAGE = 20;
export const RUNS_PER_PAGE = 25;
export const EVENTS_SHOWN_FIRST = 50;

export const BALANCES = ALL;
export const STUDIO_LIST = { limit: 20 };
/** What waits for a seller. */
export const TASKS = {
  refunds: { role: "seller", status: "pending", limit: 3 },
  reviews: { status: "unanswered", limit: 1 },
  rejected: { author: "me", status: "rejected", sort: "updatedAt", order: "desc", limit: 3 },
  suspended: { author: "me", status: "suspended", sort: "updatedAt", order: "desc", limit: 3 },
  runs: { sort: "failures", limit: 3 },
} as const;
/** A seller may have tens of thousands of products: the order has an index. */
export const NEWEST_OWN = { author: "me", sort: "updatedAt", order: "desc", limit: 1 } as const;
export const NEWEST_PUBLISHED = { ...NEWEST_OWN, status: "published" } as const;
export const ANY_SALE = { limit: 1 };
export const OWN_PRODUCTS = { author: "me", sort: "updatedAt", order: "desc", ...STUDIO_LIST } as const;
export const PRODUCT_NAMES = { author: "me", sort: "popularity", ...ALL } as const;
export const refundsOfSale = (orderId = "") => ({ role: "seller", orderId, ...ALL }) as const;

export const accountList = (page = 1) => ({ limit: 20, page });
export const credentialList = (page = 1) => ({ limit: 50, page });
export const wishlistPage = (page = 1) => credentialList(page);
export const ordersOfProduct = (productId = "") => ({ productId, limit: 20 });
export const sandboxModels = { provider: "sandbox", ...ALL };

type Search = Record<string, unknown>;
type RequestsOf = (ids: Record<string, string>, search: Search) => string[];

const list = (path: string, query: object = {}): string => toAddress(path, { page: 1, ...query });

/** A list that is filtered is left to the client, which knows the filters. */
const unfiltered = (search: Search, requests: string[]): string[] =>
  Object.keys(search).length === 0 ? requests : [];

const webhook = (id = ""): string[] => [`/webhooks/${id}`, toAddress(`/webhooks/${id}/stats`, WEBHOOK_STATS)];

const apiKeys: RequestsOf = (_, search) => [
  list("/api-keys", credentialList(pageNumber(search).page)),
  "/account/callback-secret",
];

const REQUESTS: Record<string, RequestsOf> = {
  "/wishlist": (_, search) => [list("/wishlist", wishlistPage(pageNumber(search).page))],
  // Once more for the form, which begins with the present state.
  "/account": () => ["/account"],
  "/account/security": (_, search) => [
    "/account/two-factor",
    "/account/sign-in-providers",
    list("/account/sessions", accountList(pageNumber(search).page)),
  ],
  "/account/connected-apps": (_, search) => [list("/account/grants", accountList(pageNumber(search).page))],
  "/account/plan": (_, search) => [
    "/account/subscription",
    "/account/usage",
    list("/account/subscription/payments", accountList(pageNumber(search).page)),
    list("/payment-methods", PAYMENT_METHODS),
  ],
  "/account/payment-methods": () => [list("/payment-methods", PAYMENT_METHODS)],
  "/account/provider-keys": () => [list("/ai/keys", PROVIDER_KEYS)],
  "/account/notifications": () => ["/account/notifications"],
  "/account/referral": () => ["/account/referral"],
  "/notifications": (_, search) => [
    list("/notifications", { ...accountList(pageNumber(search).page), ...flag(search, "unread") }),
  ],
  "/settings": apiKeys,
  "/settings/api": apiKeys,
  "/settings/oauth-apps": (_, search) => [list("/oauth-clients", credentialList(pageNumber(search).page))],
  "/library": () => [list("/purchases", LIBRARY), list("/ai/executions", RECENT_RUNS)],
  "/orders": (_, search) => unfiltered(search, [list("/purchases", { limit: ORDERS_PER_PAGE })]),
  "/orders/:orderId": ({ orderId }) => [`/purchases/${orderId}`],
  "/settings/webhooks": () => [list("/webhooks", WEBHOOKS)],
  "/settings/webhooks/new": () => ["/webhooks/egress"],
  "/settings/webhooks/:webhookId": ({ webhookId }, search) => [
    ...webhook(webhookId),
    ...unfiltered(search, [list(`/webhooks/${webhookId}/deliveries`, { limit: ROWS_PER_PAGE })]),
  ],
  "/settings/webhooks/:webhookId/edit": ({ webhookId }) => [`/webhooks/${webhookId}`, "/webhooks/egress"],
  "/settings/webhooks/:webhookId/deliveries/:deliveryId": ({ webhookId, deliveryId }, search) => [
    ...webhook(webhookId),
    ...unfiltered(search, [list(`/webhooks/${webhookId}/deliveries`, { limit: ROWS_PER_PAGE })]),
    `/deliveries/${deliveryId}`,
  ],
  "/settings/deliveries/:deliveryId": ({ deliveryId }) => [`/deliveries/${deliveryId}`],
  "/settings/events": (_, search) => unfiltered(search, [list("/events", { limit: EVENTS_SHOWN_FIRST })]),
  "/settings/logs": (_, search) => [
    list("/api-keys", KEY_NAMES),
    ...unfiltered(search, [list("/request-logs", { credential: "key", limit: ROWS_PER_PAGE })]),
  ],
  "/run/:productId": ({ productId }) => [
    toAddress(`/products/${productId}`, PRODUCT),
    list("/ai/keys", PROVIDER_KEYS),
    list("/ai/models", sandboxModels),
  ],
  "/runs": (_, search) =>
    unfiltered(search, [
      list("/ai/executions", { limit: RUNS_PER_PAGE }),
      list("/purchases", RUNNABLE),
      list("/products", { author: "me", ...RUNNABLE }),
    ]),
  "/checkout/:productId": ({ productId }) => [
    list("/purchases", ordersOfProduct(productId)),
    list("/payment-methods", PAYMENT_METHODS),
  ],
  // Without the payout account, for which the service asks the payment provider.
  "/studio": () => [
    list("/balance", BALANCES),
    list("/refunds", TASKS.refunds),
    list("/reviews", TASKS.reviews),
    list("/products", TASKS.rejected),
    list("/products", TASKS.suspended),
    list("/products/runs", TASKS.runs),
    "/account",
    list("/products", NEWEST_OWN),
    list("/products", NEWEST_PUBLISHED),
    list("/sales", ANY_SALE),
  ],
  "/studio/products": (_, search) => unfiltered(search, [list("/products", OWN_PRODUCTS)]),
  "/studio/runs": (_, search) =>
    unfiltered(search, [list("/products/runs", STUDIO_LIST), list("/products", PRODUCT_NAMES)]),
  "/studio/sales": (_, search) =>
    unfiltered(search, [list("/sales", STUDIO_LIST), list("/products", PRODUCT_NAMES)]),
  "/studio/sales/:orderId": ({ orderId }) => [
    `/sales/${orderId}`,
    `/sales/${orderId}/runs`,
    list("/refunds", refundsOfSale(orderId)),
  ],
  "/studio/refunds": (_, search) =>
    unfiltered(search, [
      list("/refunds", { role: "seller", ...STUDIO_LIST }),
      list("/products", PRODUCT_NAMES),
    ]),
  "/studio/refunds/:refundId": ({ refundId }) => [`/refunds/${refundId}`],
  "/studio/reviews": (_, search) =>
    unfiltered(search, [list("/reviews", STUDIO_LIST), list("/products", PRODUCT_NAMES)]),
  "/studio/discounts": (_, search) =>
    unfiltered(search, [list("/discount-codes", STUDIO_LIST), list("/products", PRODUCT_NAMES)]),
  "/studio/referrals": (_, search) =>
    unfiltered(search, [
      list("/sales", { referred: true, ...STUDIO_LIST }),
      list("/products", PRODUCT_NAMES),
    ]),
  "/studio/payouts": (_, search) =>
    unfiltered(search, [
      list("/balance", BALANCES),
      list("/balance/maturities", STUDIO_LIST),
      list("/payouts", STUDIO_LIST),
    ]),
  "/studio/payouts/:payoutId": ({ payoutId }, search) => [
    `/payouts/${payoutId}`,
    ...unfiltered(search, [list(`/payouts/${payoutId}/items`, STUDIO_LIST)]),
  ],
  "/runs/:executionId": ({ executionId }) => [`/ai/executions/${executionId}`],
};

const ID = /^\w+$/;

/** `pattern`: of the address, such as `/orders/:orderId`. A path is named twice if the first view requests it twice. */
export function memberRequests(pattern: string, ids: Record<string, string>, search: Search): string[] {
  // Anything else could lead to another address of the API.
  if (!Object.values(ids).every((id) => ID.test(id))) return [];
  return REQUESTS[pattern]?.(ids, search) ?? [];
}
