import { type Endpoint, identityScopes, permissions, type Scope, scopeDescriptions } from "@stoa/contract";
import type { Json } from "./openapi.schemas.ts";

const describedScopes = (scopes: readonly Scope[]) =>
  Object.fromEntries(scopes.map((scope) => [scope, scopeDescriptions[scope]]));

/** Every authentication scheme. `origin` is empty in the committed copy, whose URLs are relative. */
export function securitySchemes(origin: string): Json {
  const tokenUrl = `${origin}/oauth/token`;
  return {
    bearer: {
      type: "http",
      scheme: "bearer",
      description: "An API key (stoa_test_… or stoa_live_…) or an OAuth access token",
    },
    oauth2: {
      type: "oauth2",
      description:
        "Authorization code with PKCE (S256) for applications that act for a person, who consents to the scopes. Client credentials for programs that act for the owner of the client. Scopes are the names of the permissions. Register a client at POST /oauth-clients or at /oauth/register. Metadata: /.well-known/oauth-authorization-server",
      flows: {
        authorizationCode: {
          authorizationUrl: `${origin}/oauth/authorize`,
          tokenUrl,
          refreshUrl: tokenUrl,
          scopes: describedScopes([...permissions, ...identityScopes]),
        },
        clientCredentials: { tokenUrl, scopes: describedScopes(permissions) },
      },
    },
    sessionToken: {
      type: "http",
      scheme: "bearer",
      description: "`sessionToken` of a sign-in response",
    },
    sessionCookie: { type: "apiKey", in: "cookie", name: "__Host-session" },
    apiKeyInQuery: {
      type: "apiKey",
      in: "query",
      name: "api_key",
      description: "Accepted, but URLs appear in logs: prefer the header",
    },
  };
}

export function securityOf({ access, errors }: Endpoint): Json[] {
  const session = [{ sessionToken: [] }, { sessionCookie: [] }];
  // Public; some endpoints of /api/auth read the session themselves.
  if (access.who === "public") return errors.includes("INVALID_SESSION") ? session : [];
  if (access.who === "session" || access.who === "admin") return session;
  const scopes = access.permission === null ? [] : [access.permission];
  return [{ bearer: [] }, { oauth2: scopes }, { apiKeyInQuery: [] }, ...session];
}
