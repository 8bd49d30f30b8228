import { queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";

const PER_PAGE = 50;

export const apiKeysQuery = (page = 1) =>
  queryOptions({
    queryKey: ["api-keys", page],
    queryFn: ({ signal }) => stoa.apiKeys.list({ page, limit: PER_PAGE }, { signal }).page(),
  });

export const oauthClientsQuery = (page = 1) =>
  queryOptions({
    queryKey: ["oauth-clients", page],
    queryFn: ({ signal }) => stoa.oauth.clients.list({ page, limit: PER_PAGE }, { signal }).page(),
  });

export const callbackSecretQuery = queryOptions({
  queryKey: ["callback-secret"],
  queryFn: async ({ signal }) => await stoa.account.callbackSecret.get({ signal }),
});
