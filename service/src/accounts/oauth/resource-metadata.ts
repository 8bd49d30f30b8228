import type { FastifyInstance } from "fastify";
import type { Context } from "../../core/context.ts";
import { DEFAULT_RESOURCE, type ResourcePath, resourcePaths, scopesOfPath } from "./scopes.ts";

const WELL_KNOWN = "/.well-known/oauth-protected-resource";

/** RFC 9728: the authorization server of each resource. The URL without a path describes the default resource. */
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
  // A client that requests these scopes gets a refresh token. Without it, it would open a browser every 15 minutes.
  scopes_supported: [...scopesOfPath(path), "offline_access"],
  bearer_methods_supported: ["header"],
  resource_name: "Stoa",
  resource_documentation: `${origin}/docs`,
});
