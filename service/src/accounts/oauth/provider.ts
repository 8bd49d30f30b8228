import { hkdfSync } from "node:crypto";
import { type Client, type Configuration, errors, type KoaContextWithOIDC, Provider } from "oidc-provider";
import type { Context } from "../../core/context.ts";
import { digestOf, isSameDigest } from "../../core/digest.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { hasPlainCookies } from "../../platform/http/plain-cookies.ts";
import type { ServerDependencies } from "../../platform/http/server-dependencies.ts";
import { createAdapterFactory } from "./adapter.ts";
import { generateClientId } from "./client-id.ts";
import { createConsentPolicy } from "./consent-policy.ts";
import { countInvalidCredentials } from "./invalid-credentials.ts";
import { showErrorPage, showLogoutPage, showSignedOutPage } from "./provider-pages.ts";
import { syncProviderSession } from "./provider-session.ts";
import { findAccount, findActiveGrant } from "./queries.ts";
import { isLoopbackAddressUri } from "./redirect-uris.ts";
import { restrictClientMetadata } from "./registration.ts";
import type { Middleware } from "./request-context.ts";
import { allScopes, DEFAULT_RESOURCE, isPermission, scopesOfResource } from "./scopes.ts";
import { loadSigningKeys } from "./signing-keys.ts";

const MINUTE = 60;
const DAY = 86_400;
const REFRESH_IDLE = 30 * DAY;
const REFRESH_ABSOLUTE = 90 * DAY;
const ACCESS = 15 * MINUTE;
const AUTHORIZE = "/oauth/authorize";

export type OAuthDependencies = Pick<ServerDependencies, "ctx" | "limits" | "catchUpSiblings">;

export async function createProvider(dependencies: OAuthDependencies): Promise<Provider> {
  const { ctx, limits } = dependencies;
  const issuer = ctx.links.origin();
  const provider = new Provider(issuer, await createConfiguration(ctx, issuer));
  pinIssuerAddress(provider, new URL(issuer), !hasPlainCookies(ctx));
  compareSecretsByDigest(provider);
  requireExactRedirectUris(provider);
  provider.use(syncProviderSession(dependencies, provider));
  provider.use(countInvalidCredentials(limits));
  provider.use(promptConsentForOfflineAccess);
  provider.use(advertiseAllScopes);
  provider.on("server_error", (_koa, error) => ctx.log.error({ err: error }, "the OAuth server failed"));
  provider.on("error" as "server_error", (error) => ctx.log.error({ err: error }, "an OAuth answer failed"));
  return provider;
}

async function createConfiguration(ctx: Context, issuer: string): Promise<Configuration> {
  return {
    adapter: createAdapterFactory(ctx),
    jwks: await loadSigningKeys(ctx),
    findAccount: async (_koa, sub) => findOidcAccount(ctx, sub),
    scopes: ["openid", "profile", "email", "offline_access"],
    claims: { openid: ["sub"], profile: ["name"], email: ["email", "email_verified"] },
    responseTypes: ["code"],
    clientAuthMethods: ["client_secret_basic", "client_secret_post", "none"],
    ...createClientSettings(),
    // These endpoints read no cookie, so apps in browsers may call them. A client with a secret must not run there.
    clientBasedCORS: (_koa, _origin, client) => client.clientAuthMethod === "none",
    pkce: { required: () => true },
    allowOmittingSingleRegisteredRedirectUri: false,
    rotateRefreshToken: () => true,
    // A grant holds until it is revoked, also after sign-out.
    expiresWithSession: () => false,
    loadExistingGrant: async ({ oidc }) => {
      const grantId = oidc.result?.consent?.grantId ?? (await findGrantId(ctx, oidc));
      return grantId === undefined ? undefined : oidc.provider.Grant.find(grantId);
    },
    interactions: { policy: createConsentPolicy(), url: (_koa, { uid }) => `/oauth/interaction/${uid}` },
    features: createFeatures(issuer),
    cookies: createCookieSettings(ctx),
    enabledJWA: { idTokenSigningAlgValues: ["RS256", "ES256", "EdDSA"] },
    ttl: lifetimes,
    routes: paths,
    renderError: showErrorPage,
    // Client metadata must not make this server send requests.
    fetch: () => Promise.reject(new Error("this server fetches nothing for clients")),
  };
}

const lifetimes: NonNullable<Configuration["ttl"]> = {
  AccessToken: ACCESS,
  ClientCredentials: ACCESS,
  AuthorizationCode: MINUTE,
  IdToken: ACCESS,
  RefreshToken: (_koa, token) =>
    Math.max(1, Math.min(REFRESH_IDLE, REFRESH_ABSOLUTE - token.totalLifetime())),
  Grant: REFRESH_ABSOLUTE,
  Interaction: 60 * MINUTE,
  Session: 30 * DAY,
};

const paths: NonNullable<Configuration["routes"]> = {
  authorization: AUTHORIZE,
  token: "/oauth/token",
  revocation: "/oauth/revoke",
  introspection: "/oauth/introspect",
  userinfo: "/oauth/userinfo",
  registration: "/oauth/register",
  jwks: "/oauth/jwks",
  end_session: "/oauth/logout",
  pushed_authorization_request: "/oauth/par",
};

const createClientSettings = (): Pick<Configuration, "clientDefaults" | "extraClientMetadata"> => ({
  clientDefaults: {
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  extraClientMetadata: {
    properties: ["permissions"],
    // A call with a context is a registration. A call without one reads a stored client.
    validator: (koa, _key, _value, metadata) => {
      if (koa) restrictClientMetadata(metadata as Record<string, unknown>);
    },
  },
});

function createFeatures(issuer: string): Configuration["features"] {
  const isItsOwn = (_koa: unknown, client: Client, token: { clientId?: string | undefined }) =>
    token.clientId === client.clientId;
  return {
    devInteractions: { enabled: false },
    dPoP: { enabled: false },
    clientCredentials: { enabled: true },
    introspection: { enabled: true, allowedPolicy: isItsOwn },
    revocation: { enabled: true, allowedPolicy: isItsOwn },
    registration: {
      enabled: true,
      issueRegistrationAccessToken: false,
      idFactory: generateClientId,
    },
    rpInitiatedLogout: {
      enabled: true,
      logoutSource: showLogoutPage,
      postLogoutSuccessSource: showSignedOutPage,
    },
    resourceIndicators: {
      enabled: true,
      defaultResource: (_koa, _client, oneOf) => oneOf ?? issuer + DEFAULT_RESOURCE,
      // A token with permissions is for the resource; one with identity scopes is for /oauth/userinfo.
      useGrantedResource: (_koa, { scope }) => (scope ?? "").split(" ").some(isPermission),
      getResourceServerInfo: (_koa, resource, client) => {
        const scopes = scopesOfResource(issuer, resource);
        if (!scopes) throw new errors.InvalidTarget();
        const allowed = (client["permissions"] as string[] | undefined) ?? scopes;
        return {
          scope: scopes.filter((scope) => allowed.includes(scope)).join(" "),
          audience: resource,
          accessTokenTTL: ACCESS,
          accessTokenFormat: "opaque",
        };
      },
    },
  };
}

const SECURE_NAMES = {
  session: "__Host-oauth-session",
  interaction: "__Secure-oauth-interaction",
  resume: "__Secure-oauth-resume",
};
const PLAIN_NAMES = {
  session: "stoa-oauth-session",
  interaction: "stoa-oauth-interaction",
  resume: "stoa-oauth-resume",
};

const createCookieSettings = ({ config, links }: Context): Configuration["cookies"] => ({
  names: hasPlainCookies({ config, links }) ? PLAIN_NAMES : SECURE_NAMES,
  long: { httpOnly: true, sameSite: "lax" },
  short: { httpOnly: true, sameSite: "lax" },
  keys: config.sessionKeys.map((key) =>
    Buffer.from(hkdfSync("sha256", key, "", "stoa oauth cookies", 32)).toString("base64url"),
  ),
});

async function findOidcAccount(ctx: Context, sub: string) {
  const userId = toUuid("usr", sub);
  const account = userId ? await findAccount(ctx.db, userId) : undefined;
  if (!account) return undefined;
  const { email, name, emailVerifiedAt } = account;
  return {
    accountId: toId("usr", account.id),
    claims: () => ({ sub, name, email, email_verified: emailVerifiedAt !== null }),
  };
}

async function findGrantId(
  ctx: Context,
  { account, client }: KoaContextWithOIDC["oidc"],
): Promise<string | undefined> {
  const userId = account && toUuid("usr", account.accountId);
  if (!userId || !client) return undefined;
  const grant = await findActiveGrant(ctx.db, userId, client.clientId, ctx.now());
  return grant?.id;
}

/** The Host header cannot be trusted, so every URL that the provider reports comes from the issuer. */
function pinIssuerAddress({ request }: Provider, { protocol, host }: URL, isSecure: boolean): void {
  Object.defineProperties(request, {
    protocol: { get: () => protocol.replace(":", "") },
    host: { get: () => host },
    secure: { get: () => isSecure },
  });
}

/** Storage holds the digest of the secret. */
function compareSecretsByDigest({ Client }: Provider): void {
  Client.prototype.compareClientSecret = function (secret) {
    return isSameDigest(digestOf(secret), Buffer.from(this.clientSecret ?? "", "base64url"));
  };
}

/** Exact match, except for the port of a native client's loopback address (RFC 8252). */
function requireExactRedirectUris({ Client }: Provider): void {
  const allows = Client.prototype.redirectUriAllowed;
  Client.prototype.redirectUriAllowed = function (uri) {
    return this.redirectUris?.includes(uri) || (isLoopbackAddressUri(uri) && allows.call(this, uri));
  };
}

/**
 * The library drops `offline_access` silently unless the request has `prompt=consent` (OpenID Connect Core, 11). Many
 * clients omit it and would send their users to a browser every 15 minutes. `prompt=none` forbids the question.
 */
const promptConsentForOfflineAccess: Middleware = (koa, next) => {
  const { scope, prompt = "" } = koa.query;
  if (koa.path === AUTHORIZE && typeof scope === "string" && typeof prompt === "string") {
    const prompts = prompt.split(" ").filter((word) => word !== "");
    const isAskable = !prompts.includes("none") && !prompts.includes("consent");
    if (scope.split(" ").includes("offline_access") && isAskable)
      koa.query = { ...koa.query, prompt: [...prompts, "consent"].join(" ") };
  }
  return next();
};

/** The library leaves the scopes of resources out of its metadata. */
const advertiseAllScopes: Middleware = async (koa, next) => {
  await next();
  if (koa["oidc"]?.route === "discovery")
    (koa.body as Record<string, unknown>)["scopes_supported"] = allScopes;
};
