import type { FastifyInstance } from "fastify";
import type { Context } from "../../core/context.ts";
import { DEFAULT_RESOURCE, type ResourcePath, resourcePaths, scopesOfPath } from "./scopes.ts";

const WELL_KNOWN = "/.well-known/oauth-protected-resource";

/** RFC 9728: which server gives tokens for a resource of ours. Without a path, it speaks of the default one. */
export function addResourceMetadata(app: FastifyInstance, ctx: Context): void {
  const config = { cors: { origin: "*" } };
  const add = (url: string, path: ResourcePath) =>
    app.get(url, { config }, async () => toResourceMetadata(ctx.links.origin(), path));
  add(WELL_KNOWN, DEFAULT_RESOURCE);
  for (const path of resourcePaths) add(WELL_KNOWN + path, path);
}

const toResourceMetadata = (origin: string, path: ResourcePath) => ({
  resource: origin + path,
  authorization_servers: [origin],
  // With offline_access a client that asks for what it finds here gets a refresh token, in place of a browser each 15 minutes.
  scopes_supported: [...scopesOfPath(path), "offline_access"],
  bearer_methods_supported: ["header"],
  resource_name: "Stoa",
  resource_documentation: `${origin}/docs`,
});
