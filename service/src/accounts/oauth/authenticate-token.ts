import type { Context, TokenCaller } from "../../core/context.ts";
import { digestOf } from "../../core/digest.ts";
import { isPermission, type ResourcePath } from "./scopes.ts";
import { findBearer } from "./token-queries.ts";

/**
 * Whom an access token for a resource of ours acts for; null when it is unknown, expired, taken back, meant for another resource, or of
 * somebody who may not enter. It may do what its scopes say within the role of the account, and nothing of an administrator.
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
