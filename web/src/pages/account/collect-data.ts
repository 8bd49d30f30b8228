import type { List } from "@stoa/sdk";
import { stoa } from "../../api.ts";

const ALL = { limit: 100 };

/** Each list that the API has about an account. Secrets are in none of them. */
const LISTS: Record<string, () => List<unknown>> = {
  orders: () => stoa.purchases.list(ALL),
  refunds: () => stoa.refunds.list(ALL),
  runs: () => stoa.ai.executions.list(ALL),
  wishlist: () => stoa.wishlist.list(ALL),
  notifications: () => stoa.notifications.list(ALL),
  planPayments: () => stoa.account.subscription.payments(ALL),
  paymentMethods: () => stoa.paymentMethods.list(ALL),
  providerKeys: () => stoa.ai.keys.list(ALL),
  apiKeys: () => stoa.apiKeys.list(ALL),
  oauthApps: () => stoa.oauth.clients.list(ALL),
  connectedApps: () => stoa.oauth.grants.list(ALL),
  sessions: () => stoa.account.sessions.list(ALL),
  webhooks: () => stoa.webhooks.list(ALL),
};

const SELLER_LISTS: Record<string, () => List<unknown>> = {
  sales: () => stoa.sales.list(ALL),
  payouts: () => stoa.payouts.list(ALL),
  discountCodes: () => stoa.discountCodes.list(ALL),
};

/** All that the API returns about the account, list after list. */
export async function collectData(
  role: string,
  onProgress: (part: string, items: number) => void,
): Promise<Record<string, unknown>> {
  const data: Record<string, unknown> = {
    exportedAt: new Date().toISOString(),
    profile: await stoa.account.get(),
    notificationPreferences: await stoa.account.notifications.get(),
  };
  const lists = { ...LISTS, ...(role === "user" ? {} : SELLER_LISTS) };
  let items = 0;
  for (const [part, open] of Object.entries(lists)) {
    const found: unknown[] = [];
    onProgress(part, items);
    for await (const { data: page } of open().pages()) {
      found.push(...page);
      items += page.length;
      onProgress(part, items);
    }
    data[part] = found;
  }
  return data;
}
