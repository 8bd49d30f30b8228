import type { Account } from "@stoa/sdk";
import { queryOptions, useQuery } from "@tanstack/react-query";
import { queryClient, stoa } from "./api.ts";
import { initialData } from "./initial-data.ts";
import { isSignedOut } from "./lib/errors.ts";

/** The account that is signed in; null: a visitor. A session that ends while a page is open keeps its account: see SessionEnded. */
export const accountQuery = queryOptions({
  queryKey: ["account"],
  queryFn: async ({ signal }): Promise<Account | null> =>
    initialData.isSignedIn ? await stoa.account.get({ signal }) : null,
  staleTime: 300_000,
  // Another tab may have signed out, or in with another account.
  refetchOnWindowFocus: initialData.isSignedIn && "always",
});

/** Whether the service still accepts the session. Set by api.ts when a request was refused. */
export const sessionStateQuery = queryOptions({
  queryKey: ["session-state"],
  queryFn: (): "open" | "ended" => "open",
  staleTime: Number.POSITIVE_INFINITY,
  gcTime: Number.POSITIVE_INFINITY,
});

export const useAccount = (): Account | null => useQuery(accountQuery).data ?? null;

/** Whether the account may open the pages of administrators. They also need a session with two factors. */
export const isAdmin = (account: Account | null): boolean =>
  account?.permissions.includes("view:admin_panel") ?? false;

/** Whether the account has sold: others have nothing to analyze, and are refused. */
export const canReadAnalytics = (account: Account | null): boolean =>
  account?.permissions.includes("read:analytics") ?? false;

/** An account without a product is no seller yet. */
export const canSell = (account: Account | null): boolean =>
  account?.permissions.includes("manage:products") ?? false;

/** The page for signing in, which leads back to here. */
export const signInUrl = (returnTo = location.pathname + location.search): string =>
  `/auth/sign-in?returnTo=${encodeURIComponent(returnTo)}`;

/** Ends the session, forgets what its owner typed, and leaves the pages of members. */
export async function signOut(): Promise<void> {
  await stoa.signIn.logOut().catch((error: unknown) => {
    if (!isSignedOut(error)) throw error;
  });
  forgetStored();
  location.assign("/");
}

/** Names what the browser stores for the account: another person may sign in at this browser. */
export const storageKey = (name: string): string =>
  `stoa-${queryClient.getQueryData(accountQuery.queryKey)?.id}-${name}`;

function forgetStored(): void {
  const prefix = storageKey("");
  try {
    for (const storage of [localStorage, sessionStorage])
      for (const key of Object.keys(storage)) if (key.startsWith(prefix)) storage.removeItem(key);
  } catch {
    // The browser forbids storage: nothing is there.
  }
}
