import type { Endpoint } from "@stoa/contract";
import { type Caller, viewOf } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";

/**
 * What a view of another account may read. Everything else is refused, so that a new endpoint is hidden until somebody
 * adds it here. Absent on purpose: secrets (keys, sessions, second factor, payment methods, webhooks, events), private
 * texts (runs, contents of versions, exports, request logs), and reads that write (a purchase asks the payment provider).
 */
export const READABLE_IN_VIEW: ReadonlySet<string> = new Set([
  "account.get",
  "account.notifications.get",
  "account.subscription.payments",
  "account.usage.get",
  "ai.executions.list",
  "ai.models.list",
  "ai.productRuns",
  "analytics.customers",
  "analytics.entries",
  "analytics.funnel",
  "analytics.products",
  "analytics.revenue",
  "balance.get",
  "categories.list",
  "discountCodes.get",
  "discountCodes.list",
  "notifications.list",
  "payouts.get",
  "payouts.list",
  "products.facets",
  "products.get",
  "products.history",
  "products.list",
  "products.similar",
  "products.versions.list",
  "purchases.list",
  "refunds.get",
  "refunds.list",
  "reviews.get",
  "reviews.list",
  "sales.list",
  "sellers.get",
  "tags.list",
  "wishlist.list",
]);
const END = "admin.view.end";

const refused = (reason: string, message: string) =>
  new ApiError("UNAUTHORIZED", message, { required: "own-account", reason });

/** Throws for a change, and for a read that shows a secret. */
export function mustBeAllowedInView(caller: Caller, { name, method }: Endpoint): void {
  const view = viewOf(caller);
  if (!view || name === END) return;
  if (method !== "GET")
    throw view.isOver
      ? refused("view_is_over", "Your view of another account is over: end it to act as yourself again.")
      : refused("read_only_view", "You view another account, read-only: end the view to change something.");
  if (!view.isOver && !READABLE_IN_VIEW.has(name))
    throw refused("hidden_in_view", "This stays hidden while you view another account.");
}
