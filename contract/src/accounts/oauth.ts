import { z } from "zod";
import { created, endpoint, json, listOf, one } from "../core/endpoint.ts";
import { paging, Timestamp } from "../core/envelope.ts";
import { type Permission, permissions } from "../core/permissions.ts";
import { visibleLine } from "../core/visible-text.ts";

/** Scopes beside the permissions: identity, and refresh tokens (OpenID Connect). */
export const identityScopes = ["openid", "profile", "email", "offline_access"] as const;
export type Scope = Permission | (typeof identityScopes)[number];

/** Shown on the consent page. */
export const scopeDescriptions: Record<Scope, string> = {
  openid: "Identify your account",
  profile: "See your name",
  email: "See your email address",
  offline_access: "Stay connected while you are away, for up to 90 days",
  "products:read": "Look at products, and at your own drafts",
  "products:write": "Create, change, publish and delete your products",
  "purchases:read": "See what you bought and sold",
  "purchases:write": "Buy products with your payment method, ask for refunds and post reviews",
  "analytics:read": "See the figures of your sales",
  "ai:execute": "Run prompts with your stored provider keys, which costs you money there",
  "webhooks:write": "Manage your webhooks and read your events",
};

export const grantTypes = ["authorization_code", "refresh_token", "client_credentials"] as const;

const LOOPBACK_HOSTS = new Set(["127.0.0.1", "[::1]", "localhost"]);
const VISIBLE_ASCII = /^[\x21-\x5b\x5d-\x7e]+$/;

/**
 * Characters of host names and IP addresses only: URL parsers accept the host `a.example;sandbox`, which would add a
 * directive to a Content-Security-Policy.
 */
const HOST = /^(?:[a-z0-9-]+(?:\.[a-z0-9-]+)*\.?|\[[0-9a-f:.]+\])$/;

/** https, or http to a loopback address; no user:password@ and no #fragment. */
function isRedirectUri(text: string): boolean {
  const url = VISIBLE_ASCII.test(text) && !text.includes("#") ? URL.parse(text) : null;
  if (url === null || url.username !== "" || url.password !== "" || !HOST.test(url.hostname)) return false;
  return url.protocol === "https:" || (url.protocol === "http:" && LOOPBACK_HOSTS.has(url.hostname));
}

export const RedirectUri = z
  .string()
  .max(2_000)
  .refine(
    isRedirectUri,
    "must be an https URL to a host of letters, digits, hyphens and dots, or http on 127.0.0.1, [::1] or localhost, without user or #",
  )
  .describe("Compared character by character with the redirect_uri of a request");

const Scope = z.enum(permissions);

export const OAuthClient = z
  .object({
    clientId: z.string(),
    name: z.string(),
    redirectUris: z.array(z.string()),
    postLogoutRedirectUris: z.array(z.string()),
    grantTypes: z.array(z.string()),
    scopes: z.array(Scope).describe("The permissions that it may request"),
    createdAt: Timestamp,
  })
  .meta({ id: "OAuthClient" });

export const NewOAuthClient = OAuthClient.extend({
  clientSecret: z.string().describe("Shown once; only its digest is stored"),
}).meta({ id: "NewOAuthClient" });

export const CreateOAuthClient = z
  .strictObject({
    name: visibleLine(100).describe("Shown to people on the consent page"),
    redirectUris: z.array(RedirectUri).max(10).default([]).describe("Required for authorization_code"),
    postLogoutRedirectUris: z.array(RedirectUri).max(10).default([]),
    grantTypes: z
      .array(z.enum(grantTypes))
      .min(1)
      .default(["authorization_code", "refresh_token"])
      .describe(
        "client_credentials must be requested: with it, the client's secret alone acts as your own account, without consent",
      ),
    scopes: z
      .array(Scope)
      .default(["products:read"])
      .describe("The permissions that the client may request. List all that it needs"),
  })
  .meta({ id: "CreateOAuthClient" });

export const Grant = z
  .object({
    id: z.string(),
    client: z.object({
      clientId: z.string(),
      name: z.string(),
      redirectHosts: z.array(z.string()).describe("The addresses to which it sends people back"),
    }),
    scopes: z.array(z.string()),
    createdAt: Timestamp,
    lastUsedAt: Timestamp.nullable(),
    expiresAt: Timestamp,
  })
  .meta({ id: "Grant", description: "What you allowed an application to do for you" });

export type CreateOAuthClient = z.output<typeof CreateOAuthClient>;
export type OAuthClient = z.input<typeof OAuthClient>;
export type NewOAuthClient = z.input<typeof NewOAuthClient>;
export type Grant = z.input<typeof Grant>;

const access = { who: "session" } as const;
const clientParams = z.object({ clientId: z.string() });

export const clients = endpoint({
  name: "oauth.clients.list",
  method: "GET",
  path: "/oauth-clients",
  summary: "List your OAuth clients, newest first",
  access,
  query: z.strictObject(paging),
  response: listOf(OAuthClient),
});

export const createClient = endpoint({
  name: "oauth.clients.create",
  method: "POST",
  path: "/oauth-clients",
  summary: "Register an OAuth client of your own",
  description:
    "A confidential client. The response shows its secret once. Clients that cannot hold a secret, such as desktop and " +
    "command-line apps, register themselves at /oauth/register. The account's owner gets an email.",
  access,
  requiresFreshSignIn: true,
  request: json(CreateOAuthClient, {
    name: "Prompt sync",
    redirectUris: ["https://sync.example/callback"],
    scopes: ["products:read", "ai:execute"],
  }),
  response: created(NewOAuthClient),
  showsSecret: true,
  errors: ["CONFLICT"],
});

export const rotateClientSecret = endpoint({
  name: "oauth.clients.rotateSecret",
  method: "POST",
  path: "/oauth-clients/:clientId/rotate-secret",
  summary: "Create a new secret for an OAuth client",
  description:
    "The old secret ends at once; tokens that were issued with it stay valid. The account's owner gets an email.",
  access,
  requiresFreshSignIn: true,
  params: clientParams,
  response: one(NewOAuthClient),
  showsSecret: true,
  errors: ["OAUTH_CLIENT_NOT_FOUND"],
});

export const deleteClient = endpoint({
  name: "oauth.clients.delete",
  method: "DELETE",
  path: "/oauth-clients/:clientId",
  summary: "Delete an OAuth client with all its grants and tokens",
  access,
  params: clientParams,
  response: one(z.object({ clientId: z.string(), deleted: z.literal(true) })),
  errors: ["OAUTH_CLIENT_NOT_FOUND"],
});

export const grants = endpoint({
  name: "oauth.grants.list",
  method: "GET",
  path: "/account/grants",
  summary: "List the applications that may act for you, newest first",
  access,
  query: z.strictObject(paging),
  response: listOf(Grant),
});

export const revokeGrant = endpoint({
  name: "oauth.grants.revoke",
  method: "DELETE",
  path: "/account/grants/:grantId",
  summary: "Revoke the grant of an application",
  description: "Its tokens end at once.",
  access,
  params: z.object({ grantId: z.string() }),
  response: one(z.object({ id: z.string(), deleted: z.literal(true) })),
  errors: ["GRANT_NOT_FOUND"],
});
