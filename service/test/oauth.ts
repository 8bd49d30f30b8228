import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { grantTypes, permissions } from "@stoa/contract";
import { Browser, type Page } from "./browser.ts";
import { type Client, clientOf, type Market, type MarketOptions, openMarket, type Reply } from "./market.ts";

/** The OAuth library uses the real clock, so the service does too. */
export const openOAuthMarket = (options: MarketOptions = {}) =>
  openMarket({ now: () => new Date(), ...options });

export const REDIRECT_URI = "https://app.example/callback";

export interface OAuthClient {
  id: string;
  /** null: a public client. */
  secret: string | null;
  redirectUri: string;
}

export async function createOAuthClient(
  market: Market,
  owner: Client,
  options: object = {},
): Promise<OAuthClient> {
  const session = await market.createSession(owner.userId);
  const reply = await session.post("/v1/oauth-clients", {
    name: "App",
    redirectUris: [REDIRECT_URI],
    grantTypes,
    scopes: permissions,
    ...options,
  });
  assert.equal(reply.status, 201, reply.text);
  const { clientId, clientSecret, redirectUris } = reply.body.data;
  return { id: clientId, secret: clientSecret, redirectUri: redirectUris[0] };
}

export async function register(market: Market, metadata: object = {}): Promise<Reply> {
  return market
    .as(null)
    .post("/oauth/register", { client_name: "Desk", redirect_uris: [REDIRECT_URI], ...metadata });
}

export async function registerPublicClient(market: Market, metadata: object = {}): Promise<OAuthClient> {
  const reply = await register(market, metadata);
  assert.equal(reply.status, 201, reply.text);
  return { id: reply.body.client_id, secret: null, redirectUri: reply.body.redirect_uris[0] };
}

export async function signedInBrowser(market: Market, userId: string): Promise<Browser> {
  return new Browser(market.origin).signIn((await market.createSession(userId)).key);
}

export const newVerifier = () => randomBytes(32).toString("base64url");
const challengeOf = (verifier: string) => createHash("sha256").update(verifier).digest("base64url");

export interface AuthorizationRequest {
  scope?: string;
  verifier?: string;
  [parameter: string]: string | undefined;
}

export function authorizeUrl(
  market: Market,
  client: OAuthClient,
  { verifier, ...more }: AuthorizationRequest = {},
): URL {
  const url = new URL("/oauth/authorize", market.origin);
  const parameters = {
    client_id: client.id,
    response_type: "code",
    redirect_uri: client.redirectUri,
    state: "s1",
    scope: "products:read offline_access",
    prompt: "consent",
    ...(verifier && { code_challenge: challengeOf(verifier), code_challenge_method: "S256" }),
    ...more,
  };
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined) url.searchParams.set(name, value);
  return url;
}

/** Opens the request and presses the button. Returns the final URL. */
export async function consent(
  browser: Browser,
  url: URL,
  decision: "allow" | "deny" = "allow",
): Promise<URLSearchParams> {
  const page: Page = await browser.open(url);
  assert.equal(page.status, 200, `${page.url} ${page.text}`);
  const { url: end, text } = await browser.press(page, "decision", decision);
  assert.ok(end.searchParams.has("code") || end.searchParams.has("error"), `${end} ${text}`);
  return end.searchParams;
}

export async function requestCode(
  market: Market,
  browser: Browser,
  client: OAuthClient,
  ask: AuthorizationRequest,
) {
  const answer = await consent(browser, authorizeUrl(market, client, ask));
  const code = answer.get("code");
  assert.ok(code, String(answer));
  return code;
}

/** Posts to the token endpoint, as a confidential or public client. */
export function postTokenRequest(
  market: Market,
  client: OAuthClient,
  fields: Record<string, string>,
): Promise<Reply> {
  return postForm(market, client, "/oauth/token", fields);
}

export function postForm(market: Market, client: OAuthClient, path: string, fields: Record<string, string>) {
  const basic = Buffer.from(`${client.id}:${client.secret}`).toString("base64");
  const body = new URLSearchParams({ ...fields, ...(client.secret === null && { client_id: client.id }) });
  const headers: Record<string, string> = client.secret === null ? {} : { authorization: `Basic ${basic}` };
  return clientOf(market.origin, null).request("POST", path, { body, headers });
}

export const redeem = (market: Market, client: OAuthClient, code: string, verifier: string) =>
  postTokenRequest(market, client, {
    grant_type: "authorization_code",
    code,
    code_verifier: verifier,
    redirect_uri: client.redirectUri,
  });

export const refresh = (
  market: Market,
  client: OAuthClient,
  token: string,
  more: Record<string, string> = {},
) => postTokenRequest(market, client, { grant_type: "refresh_token", refresh_token: token, ...more });

export interface Tokens {
  access_token: string;
  refresh_token: string;
  id_token: string;
  scope: string;
  expires_in: number;
  token_type: string;
}

/** The whole flow: consent, code, tokens. */
export async function requestTokens(
  market: Market,
  userId: string,
  client: OAuthClient,
  ask: AuthorizationRequest = {},
): Promise<Tokens> {
  const verifier = newVerifier();
  const code = await requestCode(market, await signedInBrowser(market, userId), client, { verifier, ...ask });
  const reply = await redeem(market, client, code, verifier);
  assert.equal(reply.status, 200, reply.text);
  return reply.body;
}

/** Asserts an error in the format of RFC 6749. */
export function assertOAuthError(reply: Reply, status: number, error: string): void {
  assert.equal(`${reply.status} ${reply.body?.error}`, `${status} ${error}`, reply.text);
}
