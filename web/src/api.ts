import { Stoa } from "@stoa/sdk";
import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { fetchWithInitialData, initialData } from "./initial-data.ts";
import { isSignedOut } from "./lib/errors.ts";

/** The service, by the session cookie of this browser. The only way from here to it. */
export const stoa = new Stoa({ baseUrl: `${location.origin}/v1`, fetch: fetchWithInitialData });

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: noticeEndOfSession, onSuccess: noticeOtherAccount }),
  mutationCache: new MutationCache({ onError: noticeEndOfSession }),
  defaultOptions: {
    // The SDK repeats what may be repeated.
    queries: { staleTime: 30_000, retry: false },
    mutations: { retry: false },
  },
});

/** For requests outside of queries and mutations. */
export function noticeEndOfSession(error: unknown): void {
  if (initialData.isSignedIn && isSignedOut(error)) queryClient.setQueryData(["session-state"], "ended");
}

let accountId: string | null = null;

/** Another account signed in at this browser, in another tab. What the page holds is of the one before. */
function noticeOtherAccount(data: unknown, { queryKey }: { queryKey: readonly unknown[] }): void {
  const { id = null } =
    queryKey[0] === "account" && queryKey.length === 1 ? ((data ?? {}) as { id?: string }) : {};
  if (id === null) return;
  if (accountId !== null && accountId !== id) location.reload();
  accountId = id;
}
