import type { QueryClient } from "@tanstack/react-query";
import { createRootRouteWithContext, redirect } from "@tanstack/react-router";
import { Layout } from "../components/layout/layout.tsx";
import { NotFound } from "../components/page-error.tsx";
import { accountQuery, signInUrl } from "../session.ts";

export const rootRoute = createRootRouteWithContext<{ queryClient: QueryClient }>()({
  component: Layout,
  notFoundComponent: NotFound,
  beforeLoad: ({ context }) => context.queryClient.ensureQueryData(accountQuery).then(() => undefined),
});

/** `beforeLoad` of pages for members: visitors sign in and come back. */
export async function requireAccount({
  context,
  location,
}: {
  context: { queryClient: QueryClient };
  location: { href: string };
}): Promise<void> {
  const account = await context.queryClient.ensureQueryData(accountQuery);
  if (account === null) throw redirect({ href: signInUrl(location.href) });
}
