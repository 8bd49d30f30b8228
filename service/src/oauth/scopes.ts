import { identityScopes, type Permission, permissions } from "@stoa/contract";

/** What tokens are for, by path below the origin, with the scopes that open something there. */
const RESOURCES = { "/v1": permissions, "/mcp": ["ai:execute"] } as const satisfies Record<
  string,
  readonly Permission[]
>;

export type ResourcePath = keyof typeof RESOURCES;
export const resourcePaths = Object.keys(RESOURCES) as ResourcePath[];
export const DEFAULT_RESOURCE: ResourcePath = "/v1";

export const scopesOf = (path: ResourcePath): readonly Permission[] => RESOURCES[path];

/** The scopes of a resource by its URL, letter by letter; null when it is none of ours. */
export function scopesAt(origin: string, resource: string): readonly Permission[] | null {
  const path = resourcePaths.find((known) => resource === origin + known);
  return path ? scopesOf(path) : null;
}

type IdentityScope = (typeof identityScopes)[number];
export type Scope = Permission | IdentityScope;
export const allScopes: readonly Scope[] = [...identityScopes, ...permissions];

export const isPermission = (scope: string): scope is Permission =>
  (permissions as readonly string[]).includes(scope);
export const isIdentityScope = (scope: string): scope is IdentityScope =>
  (identityScopes as readonly string[]).includes(scope);

/** As people read them on the consent page. */
export const scopeWords: Record<Scope, string> = {
  openid: "Know which account you have here",
  profile: "See your name",
  email: "See your mail address",
  offline_access: "Stay connected while you are away, for up to 90 days",
  "products:read": "Look at products, and at your own drafts",
  "products:write": "Create, change, publish and delete your products",
  "purchases:read": "See what you bought and sold",
  "purchases:write": "Buy products with your payment method, ask for refunds and post reviews",
  "analytics:read": "See the figures of your sales",
  "ai:execute": "Run prompts with your stored provider keys, which costs you money there",
  "webhooks:write": "Manage your webhooks and read your events",
};
