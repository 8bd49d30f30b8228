/**
 * The login in the browser: authorization code with PKCE and a redirect to this machine (RFC 8252, RFC 7636), for a client that registers
 * itself (RFC 7591).
 */
import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import * as oauth from "oauth4webapi";
import { CommandError, LoginError } from "./errors.ts";
import type { OAuthLogin } from "./profiles.ts";

export const DEFAULT_SCOPES = [
  "products:read",
  "products:write",
  "purchases:read",
  "purchases:write",
  "analytics:read",
  "ai:execute",
  "webhooks:write",
];

/** Answers of the token endpoint arrive within this time, also while other commands wait for the profile's lock. */
const REQUEST_TIMEOUT_MS = 8_000;
/** How long the user has in the browser. */
const LOGIN_TIMEOUT_MS = 600_000;
/** RFC 6749, 5.2. */
const LOGIN_ENDED: ReadonlySet<string> = new Set(["invalid_grant", "invalid_client", "unauthorized_client"]);
/** A token that ends during a request is refused: renewed so much earlier. */
const EXPIRY_MARGIN_MS = 60_000;

interface LoginRequest {
  baseUrl: string;
  scopes: readonly string[];
  signal: AbortSignal;
  /** Shows the page to the user. */
  openPage: (url: URL) => void;
}

export async function logInByBrowser(request: LoginRequest): Promise<OAuthLogin> {
  const { signal } = request;
  const server = await discover(request.baseUrl, signal);
  const clientId = await register(server, signal);
  const client: oauth.Client = { client_id: clientId };
  const state = oauth.generateRandomState();
  const callback = await startCallbackServer(state);
  try {
    const verifier = oauth.generateRandomCodeVerifier();
    const url = new URL(server.authorization_endpoint ?? "");
    for (const [name, value] of Object.entries({
      client_id: clientId,
      response_type: "code",
      redirect_uri: callback.url,
      scope: [...request.scopes, "offline_access"].join(" "),
      // Without it, a server gives no refresh token (OpenID Connect Core, 11).
      prompt: "consent",
      state,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    }))
      url.searchParams.set(name, value);
    request.openPage(url);
    const answer = await callback.answer(AbortSignal.any([signal, AbortSignal.timeout(LOGIN_TIMEOUT_MS)]));
    const parameters = readAnswer(server, client, answer, state);
    const response = await oauth.authorizationCodeGrantRequest(
      ...([
        server,
        client,
        oauth.None(),
        parameters,
        callback.url,
        verifier,
        requestOptions(signal),
      ] as const),
    );
    return toLogin(clientId, await oauth.processAuthorizationCodeResponse(server, client, response));
  } finally {
    callback.close();
  }
}

export const isExpiring = ({ expiresAt }: OAuthLogin): boolean => Date.now() > expiresAt - EXPIRY_MARGIN_MS;

/** New tokens; the old refresh token is used up. */
export async function refreshLogin(baseUrl: string, login: OAuthLogin): Promise<OAuthLogin> {
  // One limit for both requests: others wait for the profile's lock.
  const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
  const server = await discover(baseUrl, signal);
  const client: oauth.Client = { client_id: login.clientId };
  try {
    const response = await oauth.refreshTokenGrantRequest(
      ...([server, client, oauth.None(), login.refreshToken, requestOptions(signal)] as const),
    );
    return toLogin(login.clientId, await oauth.processRefreshTokenResponse(server, client, response));
  } catch (error) {
    if (error instanceof oauth.ResponseBodyError && LOGIN_ENDED.has(error.error))
      throw new LoginError(
        "The login has ended: it was revoked, or not used for 30 days",
        "Run `stoa login`.",
      );
    throw error;
  }
}

/** Ends the login on the service too. */
export async function revokeLogin(baseUrl: string, login: OAuthLogin): Promise<void> {
  const server = await discover(baseUrl);
  const client: oauth.Client = { client_id: login.clientId };
  await oauth.processRevocationResponse(
    await oauth.revocationRequest(server, client, oauth.None(), login.refreshToken, requestOptions()),
  );
}

/** Plain HTTP is for services on this machine or in a private network; the user wrote the address. */
const requestOptions = (signal?: AbortSignal) => ({
  [oauth.allowInsecureRequests]: true,
  signal: () => AbortSignal.any([AbortSignal.timeout(REQUEST_TIMEOUT_MS), ...(signal ? [signal] : [])]),
});

async function discover(baseUrl: string, signal?: AbortSignal): Promise<oauth.AuthorizationServer> {
  const issuer = new URL(new URL(baseUrl).origin);
  let response: Response;
  try {
    response = await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...requestOptions(signal) });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new CommandError(
      `${issuer.origin} cannot be reached: ${reasonOf(error)}`,
      "Is the service running, and the address right? Pass --base-url or set STOA_BASE_URL.",
    );
  }
  try {
    return await oauth.processDiscoveryResponse(issuer, response);
  } catch {
    throw new CommandError(
      `${issuer.origin} is no Stoa service, or calls itself by another address`,
      "Pass the address that the service was started with (STOA_PUBLIC_URL) by --base-url.",
    );
  }
}

async function register(server: oauth.AuthorizationServer, signal: AbortSignal): Promise<string> {
  const response = await oauth.dynamicClientRegistrationRequest(
    server,
    {
      client_name: "Stoa command line",
      // A native app learns its port when it runs (RFC 8252, 7.3).
      redirect_uris: ["http://127.0.0.1/callback"],
      grant_types: ["authorization_code", "refresh_token"],
      token_endpoint_auth_method: "none",
    },
    requestOptions(signal),
  );
  try {
    return (await oauth.processDynamicClientRegistrationResponse(response)).client_id;
  } catch {
    throw new CommandError(
      `${server.issuer} refused to begin a login (${response.status})`,
      response.status === 429 ? "Try again in some minutes." : "Log in by a key: stoa login --api-key.",
    );
  }
}

function readAnswer(server: oauth.AuthorizationServer, client: oauth.Client, answer: URL, state: string) {
  try {
    return oauth.validateAuthResponse(server, client, answer, state);
  } catch (error) {
    if (error instanceof oauth.AuthorizationResponseError && error.error === "access_denied")
      throw new LoginError("The login was denied in the browser", "Run `stoa login` again and choose Allow.");
    throw new LoginError(`The login failed: ${reasonOf(error)}`, "Run `stoa login` again.");
  }
}

function toLogin(clientId: string, tokens: oauth.TokenEndpointResponse): OAuthLogin {
  if (!tokens.refresh_token || !tokens.expires_in)
    throw new LoginError("The service gave no refresh token", "Run `stoa login` again.");
  return {
    clientId,
    accessToken: tokens.access_token,
    refreshToken: tokens.refresh_token,
    expiresAt: Date.now() + tokens.expires_in * 1_000,
  };
}

/** Waits on this machine for the browser to come back. */
async function startCallbackServer(state: string) {
  const returned = new EventEmitter();
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://127.0.0.1");
    // Any page can send a request here; only the service knows the state.
    const isAnswer = url.pathname === "/callback" && url.searchParams.get("state") === state;
    response.writeHead(isAnswer ? 200 : 404, {
      "content-type": "text/plain; charset=utf-8",
      connection: "close",
    });
    response.end(isAnswer ? "You may close this window and return to the terminal.\n" : "Not found\n");
    if (isAnswer) returned.emit("answer", url);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/callback`,
    answer: async (signal: AbortSignal): Promise<URL> => {
      try {
        return (await once(returned, "answer", { signal }))[0] as URL;
      } catch (error) {
        throw signal.reason?.name === "TimeoutError"
          ? new LoginError("The login was not finished in ten minutes", "Run `stoa login` again.")
          : error;
      }
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as { message: string; cause?: { code?: string; message?: string } };
  return cause?.code ?? cause?.message ?? message;
}
