import { type QueryClient, queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";
import { refundsOfSale, STUDIO_LIST } from "../member-requests.ts";

export const saleQuery = (orderId: string) =>
  queryOptions({
    queryKey: ["sales", "one", orderId],
    queryFn: async ({ signal }) => await stoa.sales.get(orderId, { signal }),
  });

/** How often the buyer ran the product since. */
export const saleRunsQuery = (orderId: string) =>
  queryOptions({
    queryKey: ["sales", "runs", orderId],
    queryFn: async ({ signal }) => await stoa.sales.runs(orderId, { signal }),
  });

export const refundsOfSaleQuery = (orderId: string) =>
  queryOptions({
    queryKey: ["refunds", "of-sale", orderId],
    queryFn: ({ signal }) => stoa.refunds.list(refundsOfSale(orderId), { signal }).page(),
  });

export const refundQuery = (refundId: string) =>
  queryOptions({
    queryKey: ["refunds", "one", refundId],
    queryFn: async ({ signal }) => await stoa.refunds.get(refundId, { signal }),
    staleTime: 0,
  });

/** A code with the ETag of what was read, so that an edit can say which state it changes. */
export const discountCodeQuery = (id: string) =>
  queryOptions({
    queryKey: ["discount-codes", "one", id],
    queryFn: async ({ signal }) => {
      const { data, headers } = await stoa.discountCodes.get(id, { signal }).withResponse();
      return { code: data, etag: headers.get("etag") ?? "" };
    },
    staleTime: 0,
  });

export const payoutAccountQuery = queryOptions({
  queryKey: ["payouts", "account"],
  queryFn: async ({ signal }) => await stoa.payouts.account.get({ signal }),
  staleTime: 0,
});

/** Two parts of the studio's overview need it, and each request asks the payment provider. */
export const fetchPayoutAccount = (client: QueryClient) =>
  client.fetchQuery({ ...payoutAccountQuery, staleTime: 5_000 });

export const payoutsQuery = (page?: number) =>
  queryOptions({
    queryKey: ["payouts", "list", page],
    queryFn: ({ signal }) =>
      stoa.payouts.list({ ...(page !== undefined && { page }), ...STUDIO_LIST }, { signal }).page(),
    staleTime: 5_000,
  });

export const payoutQuery = (payoutId: string) =>
  queryOptions({
    queryKey: ["payouts", "one", payoutId],
    queryFn: async ({ signal }) => await stoa.payouts.get(payoutId, { signal }),
    staleTime: 5_000,
  });

export const payoutItemsQuery = (payoutId: string, page?: number) =>
  queryOptions({
    queryKey: ["payouts", "items", payoutId, page],
    queryFn: ({ signal }) =>
      stoa.payouts
        .items(payoutId, { ...(page !== undefined && { page }), ...STUDIO_LIST }, { signal })
        .page(),
  });
