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

const ofUser = ["read:own_profile", "create:products"] as const;
const ofSeller = [...ofUser, "read:analytics", "manage:products"] as const;
const ofAdmin = [...ofSeller, "manage:all", "view:admin_panel"] as const;

/** Roles are cumulative. */
export const rolePermissions = { user: ofUser, seller: ofSeller, admin: ofAdmin } as const;
export type RolePermission = (typeof ofAdmin)[number];

/**
 * Who may call an endpoint; all other callers are refused. `public`: no authentication. `visitor`: a guest of the
 * storefront, or a member with the permission (null: any). `member`: an account; a key or token needs the permission (null: any), a
 * session has every permission of its role. `session`: a signed-in user, no key or token. `admin`: an administrator in a
 * two-factor session. `rolePermission` additionally requires a role.
 */
export type Access =
  | { who: "public" }
  | { who: "visitor"; permission: Permission | null }
  | { who: "member"; permission: Permission | null; rolePermission?: RolePermission }
  | { who: "session"; rolePermission?: RolePermission }
  | { who: "admin" };
