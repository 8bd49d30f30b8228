import type { Context, TokenCaller } from "../../core/context.ts";
import { digestOf } from "../../core/digest.ts";
import { isPermission, type ResourcePath } from "./scopes.ts";
import { findBearer } from "./token-queries.ts";

/**
 * null: the token is unknown, expired, revoked, for another resource, or its account may not sign in. Scopes never
 * exceed the role, and never grant admin rights.
 */
export async function authenticateAccessToken(
  ctx: Context,
  value: string,
  resource: ResourcePath,
): Promise<TokenCaller | null> {
  const audience = ctx.links.origin() + resource;
  const bearer = await findBearer(ctx, digestOf(value), audience, ctx.now());
  if (!bearer) return null;
  const { scope, ...known } = bearer;
  return { kind: "token", ...known, permissions: new Set(scope.split(" ").filter(isPermission)) };
}
