import { identityScopes, type Permission, permissions, type Scope } from "@stoa/contract";

/** The resources by path below the origin, with their scopes. */
const RESOURCES = { "/v1": permissions, "/mcp": ["ai:execute"] } as const satisfies Record<
  string,
  readonly Permission[]
>;

export type ResourcePath = keyof typeof RESOURCES;
export const resourcePaths = Object.keys(RESOURCES) as ResourcePath[];
export const DEFAULT_RESOURCE: ResourcePath = "/v1";

export const scopesOfPath = (path: ResourcePath): readonly Permission[] => RESOURCES[path];

/** null: the URL is none of our resources. */
export function scopesOfResource(origin: string, resource: string): readonly Permission[] | null {
  const path = resourcePaths.find((known) => resource === origin + known);
  return path ? scopesOfPath(path) : null;
}

type IdentityScope = (typeof identityScopes)[number];
export const allScopes: readonly Scope[] = [...identityScopes, ...permissions];

export const isPermission = (scope: string): scope is Permission =>
  (permissions as readonly string[]).includes(scope);
export const isIdentityScope = (scope: string): scope is IdentityScope =>
  (identityScopes as readonly string[]).includes(scope);
