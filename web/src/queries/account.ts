import { queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";
import { accountList, PAYMENT_METHODS, PROVIDER_KEYS } from "../member-requests.ts";

/** The account with the ETag of what was read, so that an edit can say which state it changes. */
export const profileQuery = queryOptions({
  queryKey: ["account", "profile"],
  queryFn: async ({ signal }) => {
    const { data, headers } = await stoa.account.get({ signal }).withResponse();
    return { account: data, etag: headers.get("etag") ?? "" };
  },
  // An edit begins with the present state.
  staleTime: 0,
});

export const twoFactorQuery = queryOptions({
  queryKey: ["two-factor"],
  queryFn: async ({ signal }) => await stoa.twoFactor.get({ signal }),
});

export const signInProvidersQuery = queryOptions({
  queryKey: ["sign-in-providers"],
  queryFn: async ({ signal }) => await stoa.account.signInProviders.list({ signal }),
});

export const sessionsQuery = (page = 1) =>
  queryOptions({
    queryKey: ["sessions", page],
    queryFn: ({ signal }) => stoa.account.sessions.list(accountList(page), { signal }).page(),
  });

export const grantsQuery = (page = 1) =>
  queryOptions({
    queryKey: ["grants", page],
    queryFn: ({ signal }) => stoa.oauth.grants.list(accountList(page), { signal }).page(),
  });

export const subscriptionQuery = queryOptions({
  queryKey: ["subscription"],
  queryFn: async ({ signal }) => await stoa.account.subscription.get({ signal }),
});

export const referralQuery = queryOptions({
  queryKey: ["referral"],
  queryFn: async ({ signal }) => await stoa.account.referral.get({ signal }),
});

export const usageQuery = queryOptions({
  queryKey: ["usage"],
  queryFn: async ({ signal }) => await stoa.account.usage.get({ signal }),
  // What the page's loader read is not read again by the page.
  staleTime: 5_000,
});

export const planPaymentsQuery = (page = 1) =>
  queryOptions({
    queryKey: ["plan-payments", page],
    queryFn: ({ signal }) => stoa.account.subscription.payments(accountList(page), { signal }).page(),
  });

/** An account can have ten; a test environment adds its own. */
export const paymentMethodsQuery = queryOptions({
  queryKey: ["payment-methods"],
  queryFn: ({ signal }) => stoa.paymentMethods.list(PAYMENT_METHODS, { signal }).page(),
});

/** An account can have a hundred. */
export const providerKeysQuery = queryOptions({
  queryKey: ["provider-keys"],
  queryFn: ({ signal }) => stoa.ai.keys.list(PROVIDER_KEYS, { signal }).page(),
});

export const preferencesQuery = queryOptions({
  queryKey: ["notification-preferences"],
  queryFn: async ({ signal }) => await stoa.account.notifications.get({ signal }),
});

export interface NotificationSearch {
  page?: number;
  unread?: true;
}

export const notificationsQuery = ({ page = 1, unread }: NotificationSearch) =>
  queryOptions({
    queryKey: ["notifications", { page, unread }],
    queryFn: ({ signal }) =>
      stoa.notifications.list({ ...accountList(page), ...(unread && { unread }) }, { signal }).page(),
  });
