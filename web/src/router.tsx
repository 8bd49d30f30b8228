import { createRouter } from "@tanstack/react-router";
import { queryClient } from "./api.ts";
import { PageError } from "./components/page-error.tsx";
import { PageSkeleton } from "./components/skeleton.tsx";
import { accountRoutes, notificationsRoute } from "./routes/account.tsx";
import { adminShellRoute } from "./routes/admin-shell.ts";
import { analyticsRoutes } from "./routes/analytics.tsx";
import { apiAccessRoutes, settingsRoute } from "./routes/api-access.tsx";
import { buyingRoutes } from "./routes/buying.tsx";
import { marketRoutes } from "./routes/market.tsx";
import { moderationRoutes } from "./routes/moderation.tsx";
import { operationRoutes, restoreRoute } from "./routes/operation.tsx";
import { productEditorRoutes } from "./routes/product-editor.tsx";
import { rootRoute } from "./routes/root.tsx";
import { runningRoutes } from "./routes/running.tsx";
import { sellingRoutes } from "./routes/selling.tsx";
import { studioRoutes } from "./routes/studio.tsx";
import { studioShellRoute } from "./routes/studio-shell.ts";
import { webhookRoutes } from "./routes/webhooks.tsx";
import { workflowEditorRoutes } from "./routes/workflow-editor.tsx";

// The router's own forms are JSON: a search for 123 would be written as ?q="123", and 1e3 in an address read as 1000.
const parseSearch = (text: string): Record<string, string> => Object.fromEntries(new URLSearchParams(text));

function stringifySearch(search: Record<string, unknown>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(search))
    if (value !== undefined && value !== null) parameters.set(name, String(value));
  return parameters.size === 0 ? "" : `?${parameters}`;
}

export const router = createRouter({
  routeTree: rootRoute.addChildren([
    ...marketRoutes,
    ...buyingRoutes,
    ...runningRoutes,
    accountRoutes,
    notificationsRoute,
    restoreRoute,
    apiAccessRoutes,
    settingsRoute,
    webhookRoutes,
    studioShellRoute.addChildren([...studioRoutes, ...sellingRoutes, ...analyticsRoutes]),
    ...productEditorRoutes,
    ...workflowEditorRoutes,
    adminShellRoute.addChildren([...moderationRoutes, ...operationRoutes]),
  ]),
  context: { queryClient },
  parseSearch,
  stringifySearch,
  defaultPreload: "intent",
  // The query client decides what is fresh.
  defaultPreloadStaleTime: 0,
  scrollRestoration: true,
  defaultErrorComponent: PageError,
  defaultPendingComponent: PageSkeleton,
  defaultPendingMs: 150,
  // A page that comes soon after its skeleton is shown at once, instead of half a second later.
  defaultPendingMinMs: 0,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
