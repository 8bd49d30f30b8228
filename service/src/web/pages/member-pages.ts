/** Addresses of the client for members, with the module of each. Visitors sign in first and come back. */
export const MEMBER_PAGES: Record<string, string> = {
  "/wishlist": "src/pages/market/wishlist.tsx",
  "/account": "src/pages/account/profile.tsx",
  "/account/security": "src/pages/account/security.tsx",
  "/account/connected-apps": "src/pages/account/connected-apps.tsx",
  "/account/plan": "src/pages/account/plan.tsx",
  "/account/payment-methods": "src/pages/account/payment-methods.tsx",
  "/account/provider-keys": "src/pages/account/provider-keys.tsx",
  "/account/notifications": "src/pages/account/notification-preferences.tsx",
  "/account/referral": "src/pages/account/referral.tsx",
  "/account/data": "src/pages/account/data.tsx",
  "/notifications": "src/pages/account/notifications.tsx",
  "/studio": "src/pages/studio/overview.tsx",
  "/settings": "src/pages/api-access/api-keys.tsx",
  "/settings/api": "src/pages/api-access/api-keys.tsx",
  "/settings/oauth-apps": "src/pages/api-access/oauth-apps.tsx",
  "/library": "src/pages/buying/library.tsx",
  "/orders": "src/pages/buying/orders.tsx",
  "/orders/:orderId": "src/pages/buying/order.tsx",
  "/settings/webhooks": "src/pages/webhooks/webhooks.tsx",
  "/settings/webhooks/new": "src/pages/webhooks/webhook-new.tsx",
  "/settings/webhooks/debugger": "src/pages/webhooks/signatures.tsx",
  "/settings/webhooks/:webhookId": "src/pages/webhooks/webhook.tsx",
  "/settings/webhooks/:webhookId/edit": "src/pages/webhooks/webhook-edit.tsx",
  "/settings/webhooks/:webhookId/deliveries/:deliveryId": "src/pages/webhooks/webhook.tsx",
  "/settings/deliveries/:deliveryId": "src/pages/webhooks/webhook.tsx",
  "/settings/signatures": "src/pages/webhooks/signatures.tsx",
  "/settings/events": "src/pages/webhooks/events.tsx",
  "/settings/logs": "src/pages/webhooks/logs.tsx",
  "/run/:productId": "src/pages/running/run.tsx",
  "/runs": "src/pages/running/runs.tsx",
  "/runs/:executionId": "src/pages/running/run-detail.tsx",
};

/** Addresses of the client for everybody that search engines do not list, with the module and title of each. */
export const OPEN_PAGES: Record<string, { module: string; title: string }> = {
  "/checkout/:productId": { module: "src/pages/buying/checkout.tsx", title: "Checkout" },
};
