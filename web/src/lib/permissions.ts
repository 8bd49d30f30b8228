import type { ApiKey } from "@stoa/sdk";

export type Permission = keyof ApiKey["permissions"];

/** In the order of the contract. `text` follows the label: "Buy: spends money with your payment methods". */
export const PERMISSIONS: { name: Permission; label: string; text: string }[] = [
  { name: "products:read", label: "Read products", text: "the market, and your drafts" },
  { name: "products:write", label: "Write products", text: "create, change, publish and delete yours" },
  { name: "purchases:read", label: "Read orders", text: "what you bought and sold" },
  {
    name: "purchases:write",
    label: "Buy",
    text: "spends money with your payment methods; refunds and reviews",
  },
  { name: "analytics:read", label: "Read analytics", text: "the figures of your sales" },
  { name: "ai:execute", label: "Run", text: "uses your provider keys, which costs you money there" },
  { name: "webhooks:write", label: "Webhooks", text: "manages endpoints, reads events and logs" },
];

const labels = new Map<string, string>([
  ...PERMISSIONS.map(({ name, label }) => [name, label] as const),
  ["openid", "Identify you"],
  ["profile", "See your name"],
  ["email", "See your email address"],
  ["offline_access", "Stay connected while you are away"],
]);

/** Also of the scopes of OpenID Connect. A later version of the service may add some. */
export const permissionLabel = (name: string): string => labels.get(name) ?? name;

export const PRESETS: { label: string; permissions: Permission[] }[] = [
  { label: "Read", permissions: ["products:read", "purchases:read", "analytics:read"] },
  { label: "Buyer", permissions: ["products:read", "purchases:read", "purchases:write"] },
  {
    label: "Seller",
    permissions: ["products:read", "products:write", "purchases:read", "analytics:read", "webhooks:write"],
  },
  { label: "Run", permissions: ["products:read", "ai:execute"] },
  { label: "All", permissions: PERMISSIONS.map(({ name }) => name) },
];
