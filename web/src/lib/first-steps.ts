import type { List } from "@stoa/sdk";
import { type QueryClient, queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";
import { ANY_SALE, NEWEST_OWN, NEWEST_PUBLISHED } from "../member-requests.ts";
import { fetchPayoutAccount } from "../queries/selling.ts";

export interface Step {
  title: string;
  text: string;
  /** A page of the client, or an address of the service's other pages. */
  to: string;
  isDone: boolean;
}

const NO_BUYER_STEPS = { purchases: false, providerKeys: false, runs: false };
export const NO_SELLER_STEPS = {
  handle: false,
  products: false,
  published: false,
  payoutAccount: false,
  sales: false,
};
const NO_INTEGRATOR_STEPS = { apiKeys: false, requests: false, webhooks: false, deliveries: false };
export const NOTHING_DONE = { ...NO_BUYER_STEPS, ...NO_SELLER_STEPS, ...NO_INTEGRATOR_STEPS };
type BuyerProgress = typeof NO_BUYER_STEPS;
type SellerProgress = typeof NO_SELLER_STEPS;
type IntegratorProgress = typeof NO_INTEGRATOR_STEPS;
type Progress = typeof NOTHING_DONE;

const ONE = { limit: 1 };
const hasAny = async (list: List<unknown>): Promise<boolean> => (await list.page()).data.length > 0;

async function readBuyerProgress(): Promise<BuyerProgress> {
  const [purchases, providerKeys, runs] = await Promise.all([
    hasAny(stoa.purchases.list(ONE)),
    hasAny(stoa.ai.keys.list(ONE)),
    hasAny(stoa.ai.executions.list(ONE)),
  ]);
  return { purchases, providerKeys, runs };
}

async function readSellerProgress(client: QueryClient): Promise<SellerProgress> {
  const [account, products, published] = await Promise.all([
    stoa.account.get(),
    hasAny(stoa.products.list(NEWEST_OWN)),
    hasAny(stoa.products.list(NEWEST_PUBLISHED)),
  ]);
  // Accounts without a product may not ask about sales and payouts.
  const isSeller = account.permissions.includes("manage:products");
  const [sales, payouts] = await Promise.all([
    isSeller && hasAny(stoa.sales.list(ANY_SALE)),
    isSeller ? fetchPayoutAccount(client) : null,
  ]);
  const payoutAccount = payouts !== null && payouts.account !== null;
  return { handle: account.handle !== null, products, published, payoutAccount, sales };
}

async function readIntegratorProgress(): Promise<IntegratorProgress> {
  const [apiKeys, requests, webhooks] = await Promise.all([
    hasAny(stoa.apiKeys.list(ONE)),
    hasAny(stoa.requestLogs.list(ONE)),
    stoa.webhooks.list(ONE).page(),
  ]);
  const endpoint = webhooks.data[0];
  const deliveries = endpoint ? await hasAny(stoa.webhooks.deliveries(endpoint.id, ONE)) : false;
  return { apiKeys, requests, webhooks: endpoint !== undefined, deliveries };
}

/** What a member did already, by the resources that exist. */
export const progressQuery = queryOptions({
  queryKey: ["first-steps", "all"],
  queryFn: async ({ client }): Promise<Progress> => {
    const [buyer, seller, integrator] = await Promise.all([
      readBuyerProgress(),
      readSellerProgress(client),
      readIntegratorProgress(),
    ]);
    return { ...buyer, ...seller, ...integrator };
  },
});

export const sellerProgressQuery = queryOptions({
  queryKey: ["first-steps", "seller"],
  queryFn: ({ client }) => readSellerProgress(client),
});

export const ROLES = ["buyer", "seller", "integrator"] as const;
export type Role = (typeof ROLES)[number];
export const ROLE_LABELS: Record<Role, string> = {
  buyer: "Buy and run",
  seller: "Sell",
  integrator: "Use the API",
};

export const STEPS = {
  buyer: ({ purchases, providerKeys, runs }: BuyerProgress) => [
    {
      title: "Get a product",
      text: "In a test environment no money moves.",
      to: "/search",
      isDone: purchases,
    },
    {
      title: "Add a provider key",
      text: "Or use the sandbox of a test environment, which needs none.",
      to: "/account/provider-keys",
      isDone: providerKeys || runs,
    },
    { title: "Run it", text: "You see the cost before each run.", to: "/library", isDone: runs },
  ],
  seller: ({ handle, products, published, payoutAccount, sales }: SellerProgress) => [
    { title: "Choose a handle", text: "Your page gets its address by it.", to: "/account", isDone: handle },
    {
      title: "Write a product",
      text: "A prompt or a workflow, as a draft.",
      to: "/studio/products",
      isDone: products,
    },
    { title: "Publish it", text: "The service checks it first.", to: "/studio/products", isDone: published },
    {
      title: "Add a payout account",
      text: "Your sales are paid to it.",
      to: "/studio/payouts",
      isDone: payoutAccount,
    },
    { title: "Sell it", text: "Share the link of its page.", to: "/studio/products", isDone: sales },
  ],
  integrator: ({ apiKeys, requests, webhooks, deliveries }: IntegratorProgress) => [
    {
      title: "Create an API key",
      text: "It acts as you, and does only what it allows.",
      to: "/settings/api",
      isDone: apiKeys,
    },
    {
      title: "Send a request",
      text: "The request log shows it within a second.",
      to: "/settings/logs",
      isDone: requests,
    },
    {
      title: "Create a webhook",
      text: "The built-in inbox receives it in one click.",
      to: "/settings/webhooks",
      isDone: webhooks,
    },
    {
      title: "See an event arrive",
      text: "Send a test event, then look at its delivery.",
      to: "/settings/webhooks",
      isDone: deliveries,
    },
  ],
} satisfies Record<Role, (progress: Progress) => Step[]>;
