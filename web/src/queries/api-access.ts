import { queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";
import { credentialList } from "../member-requests.ts";

export const apiKeysQuery = (page = 1) =>
  queryOptions({
    queryKey: ["api-keys", page],
    queryFn: ({ signal }) => stoa.apiKeys.list(credentialList(page), { signal }).page(),
  });

export const oauthClientsQuery = (page = 1) =>
  queryOptions({
    queryKey: ["oauth-clients", page],
    queryFn: ({ signal }) => stoa.oauth.clients.list(credentialList(page), { signal }).page(),
  });

export const callbackSecretQuery = queryOptions({
  queryKey: ["callback-secret"],
  queryFn: async ({ signal }) => await stoa.account.callbackSecret.get({ signal }),
});
