import { permissions } from "@stoa/contract";
import type { Caller } from "../../core/context.ts";
import type { ApiError } from "../../core/errors.ts";

/**
 * `WWW-Authenticate`: how to get a credential that works for a resource such as /v1 (RFC 9728), and which scope a token
 * lacks (RFC 6750).
 */
export function wwwAuthenticateOf(
  origin: string,
  resource: string,
  error: ApiError,
  caller: Caller | null,
): string | null {
  const metadata = `resource_metadata="${origin}/.well-known/oauth-protected-resource${resource}"`;
  // MCP: the scope that a new client requests.
  const wanted = resource === "/mcp" ? 'scope="ai:execute offline_access", ' : "";
  if (error.code === "INVALID_API_KEY") return `Bearer realm="stoa", ${wanted}${metadata}`;
  const scope = caller?.kind === "token" ? missingScope(error) : undefined;
  return scope ? `Bearer realm="stoa", error="insufficient_scope", scope="${scope}", ${metadata}` : null;
}

/** undefined: no scope would help. */
const missingScope = ({ code, details }: ApiError) =>
  code === "UNAUTHORIZED" ? permissions.find((scope) => scope === details?.["required"]) : undefined;
