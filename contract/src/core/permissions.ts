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

/** What each role may do; roles are cumulative. */
export const rolePermissions = { user: ofUser, seller: ofSeller, admin: ofAdmin } as const;
export type RolePermission = (typeof ofAdmin)[number];

/**
 * Who may call an endpoint; whoever is not named here stays out.
 * `public`: nobody is asked; below /v1 that is what a firewall fetches. `visitor`: a guest of the storefront, or a member with the permission. `member`: somebody with
 * an account; a key or token needs the permission (null: any will do), a session has every permission of its role.
 * `session`: a person who signed in, never a key or token. `admin`: a session of an administrator, entered with two factors.
 * `rolePermission` asks for a role beside all that.
 */
export type Access =
  | { who: "public" }
  | { who: "visitor"; permission: Permission }
  | { who: "member"; permission: Permission | null; rolePermission?: RolePermission }
  | { who: "session"; rolePermission?: RolePermission }
  | { who: "admin" };
