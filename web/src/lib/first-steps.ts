import type { List } from "@stoa/sdk";
import { queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";

export interface Step {
  title: string;
  text: string;
  /** A page of the client, or an address of the service's other pages. */
  to: string;
  isDone: boolean;
}

export const NOTHING_DONE = {
  purchases: false,
  providerKeys: false,
  runs: false,
  handle: false,
  products: false,
  published: false,
  payoutAccount: false,
  sales: false,
  apiKeys: false,
  requests: false,
  webhooks: false,
  deliveries: false,
};
type Progress = typeof NOTHING_DONE;

const ONE = { limit: 1 };
/** In an order that an index has: a seller may have tens of thousands. */
const OWN = { author: "me", sort: "updatedAt", order: "desc", ...ONE } as const;
const hasAny = async (list: List<unknown>): Promise<boolean> => (await list.page()).data.length > 0;

/** What a member did already, by the resources that exist. */
export const progressQuery = queryOptions({
  queryKey: ["first-steps"],
  queryFn: async (): Promise<Progress> => {
    const [account, webhooks, products, published] = await Promise.all([
      stoa.account.get(),
      stoa.webhooks.list(ONE).page(),
      hasAny(stoa.products.list(OWN)),
      hasAny(stoa.products.list({ ...OWN, status: "published" })),
    ]);
    const endpoint = webhooks.data[0];
    // Accounts without a product may not ask about sales and payouts.
    const isSeller = account.permissions.includes("manage:products");
    const [purchases, providerKeys, runs, sales, payouts, apiKeys, requests, deliveries] = await Promise.all([
      hasAny(stoa.purchases.list(ONE)),
      hasAny(stoa.ai.keys.list(ONE)),
      hasAny(stoa.ai.executions.list(ONE)),
      isSeller && hasAny(stoa.sales.list(ONE)),
      isSeller ? stoa.payouts.account.get() : null,
      hasAny(stoa.apiKeys.list(ONE)),
      hasAny(stoa.requestLogs.list(ONE)),
      endpoint ? hasAny(stoa.webhooks.deliveries(endpoint.id, ONE)) : false,
    ]);
    return {
      purchases,
      providerKeys,
      runs,
      handle: account.handle !== null,
      products,
      published,
      payoutAccount: payouts !== null && payouts.account !== null,
      sales,
      apiKeys,
      requests,
      webhooks: endpoint !== undefined,
      deliveries,
    };
  },
});

export const ROLES = ["buyer", "seller", "integrator"] as const;
export type Role = (typeof ROLES)[number];
export const ROLE_LABELS: Record<Role, string> = {
  buyer: "Buy and run",
  seller: "Sell",
  integrator: "Use the API",
};

export const STEPS: Record<Role, (progress: Progress) => Step[]> = {
  buyer: ({ purchases, providerKeys, runs }) => [
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
  seller: ({ handle, products, published, payoutAccount, sales }) => [
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
  integrator: ({ apiKeys, requests, webhooks, deliveries }) => [
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
};
