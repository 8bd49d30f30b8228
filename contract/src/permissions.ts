/** The permissions of an API key or OAuth token: the specification's six and `webhooks:write`, which is additive. */
export const permissions = [
  "products:read",
  "products:write",
  "purchases:read",
  "purchases:write",
  "analytics:read",
  "ai:execute",
  "webhooks:write",
] as const;

export type Permission = (typeof permissions)[number];

export const roles = ["user", "seller", "admin"] as const;
export type Role = (typeof roles)[number];

/**
 * Who may call an endpoint. `public`: nobody is asked; `visitor`: a guest of the storefront or a member with the
 * permission; `member`: a member with the permission.
 */
export type Access =
  | { who: "public" }
  | { who: "visitor"; permission: Permission }
  | { who: "member"; permission: Permission };
