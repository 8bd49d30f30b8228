import { createHash, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { exportJWK, generateKeyPair } from "jose";
import { Provider } from "oidc-provider";

export const CLIENT = { clientId: "stoa", clientSecret: "a-client-secret-that-must-not-be-logged" };

/** Answers a request in place of the server and returns true; false: the server answers as usual. */
type Fault = (request: IncomingMessage, response: ServerResponse) => boolean;

interface IdentityServer {
  issuer: string;
  /** Requests by path. */
  asked: string[];
  fault: Fault | null;
  close(): Promise<void>;
}

interface Handled {
  server: Server;
  state: { asked: string[]; fault: Fault | null };
  issuer: string;
}

async function listen(
  handle: (request: IncomingMessage, response: ServerResponse) => unknown,
): Promise<Handled> {
  const state: Handled["state"] = { asked: [], fault: null };
  const server = createServer((request, response) => {
    state.asked.push(request.url!.split("?")[0]!);
    if (!state.fault?.(request, response)) handle(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, state, issuer: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const closing = (server: Server) => () =>
  new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });

export interface GitHubPerson {
  id: number;
  login: string;
  name: string | null;
  emails: { email: string; primary: boolean; verified: boolean }[];
}

export interface FakeGitHub extends IdentityServer {
  /** The access tokens given to clients, oldest first. */
  issuedTokens: string[];
  /** The browser's user; null declines. */
  person: GitHubPerson | null;
  /** The value of `iss`; null omits it, as GitHub did until 2026. */
  iss: string | null;
}

/** GitHub's sign-in: errors with HTTP 200, codes that work once, PKCE. */
export async function startFakeGitHub(): Promise<FakeGitHub> {
  const codes = new Map<string, { person: GitHubPerson; challenge: string }>();
  const tokens = new Map<string, GitHubPerson>();
  const { server, state, issuer } = await listen(async (request, response) => {
    const url = new URL(request.url!, issuer);
    if (url.pathname === "/login/oauth/authorize") return authorize(url, response);
    if (url.pathname === "/login/oauth/access_token") return json(response, redeem(await text(request)));
    const person = tokens.get(request.headers.authorization?.replace("Bearer ", "") ?? "");
    if (!person) return json(response, { message: "Bad credentials" }, 401);
    const { emails, ...user } = person;
    return json(response, url.pathname === "/user" ? user : emails);
  });

  function authorize(url: URL, response: ServerResponse): void {
    const { redirect_uri, state, code_challenge, code_challenge_method, client_id } = Object.fromEntries(
      url.searchParams,
    );
    if (client_id !== CLIENT.clientId || code_challenge_method !== "S256") {
      json(response, { error: "not a request of ours" }, 400);
      return;
    }
    const back = new URL(redirect_uri!);
    back.searchParams.set("state", state!);
    if (fake.iss !== null) back.searchParams.set("iss", fake.iss);
    if (fake.person === null) back.searchParams.set("error", "access_denied");
    else {
      const code = randomBytes(16).toString("hex");
      codes.set(code, { person: fake.person, challenge: code_challenge! });
      back.searchParams.set("code", code);
    }
    response.writeHead(302, { location: back.href }).end();
  }

  function redeem(body: string): object {
    const form = new URLSearchParams(body);
    const grant = codes.get(form.get("code") ?? "");
    codes.delete(form.get("code") ?? "");
    if (form.get("client_secret") !== CLIENT.clientSecret) return { error: "incorrect_client_credentials" };
    const challenge = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    if (grant?.challenge !== challenge)
      return {
        error: "bad_verification_code",
        error_description: "The code passed is incorrect or expired.",
      };
    const token = `gho_${randomBytes(16).toString("hex")}`;
    tokens.set(token, grant.person);
    fake.issuedTokens.push(token);
    return { access_token: token, token_type: "bearer", scope: "read:user,user:email" };
  }

  const fake: FakeGitHub = Object.assign(state, {
    issuer,
    person: null,
    issuedTokens: [],
    iss: `${issuer}/login/oauth`,
    close: closing(server),
  });
  return fake;
}

function json(response: ServerResponse, body: object, status = 200): void {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8" }).end(JSON.stringify(body));
}

export interface GooglePerson {
  sub: string;
  email?: string;
  email_verified?: boolean;
  name?: string;
}

export interface FakeGoogle extends IdentityServer {
  /** The browser's user; null declines. */
  person: GooglePerson | null;
  /** Registers a redirect URI. */
  register(redirectUri: string): Promise<void>;
}

/** A certified OpenID provider in place of Google, with a signed-in user. */
export async function startFakeGoogle(): Promise<FakeGoogle> {
  const people = new Map<string, GooglePerson>();
  let provider: Provider | null = null;
  const { server, state, issuer } = await listen(async (request, response) => {
    if (!provider) return response.writeHead(503).end();
    if (!request.url!.startsWith("/interaction/")) return provider.callback()(request, response);
    return provider.interactionFinished(request, response, await decide(provider, request, response));
  });

  async function decide(at: Provider, request: IncomingMessage, response: ServerResponse) {
    const { person } = fake;
    if (person === null) return { error: "access_denied" };
    people.set(person.sub, person);
    const { prompt, params } = await at.interactionDetails(request, response);
    if (prompt.name === "login") return { login: { accountId: person.sub } };
    const grant = new at.Grant({ accountId: person.sub, clientId: String(params["client_id"]) });
    grant.addOIDCScope("openid email profile");
    return { consent: { grantId: await grant.save() } };
  }

  async function register(redirectUri: string): Promise<void> {
    const { privateKey } = await generateKeyPair("RS256", { extractable: true });
    provider = new Provider(issuer, {
      clients: [
        {
          client_id: CLIENT.clientId,
          client_secret: CLIENT.clientSecret,
          redirect_uris: [redirectUri],
          token_endpoint_auth_method: "client_secret_post",
        },
      ],
      jwks: { keys: [{ ...(await exportJWK(privateKey)), use: "sig", alg: "RS256" }] },
      cookies: { keys: [randomBytes(32).toString("hex")] },
      features: { devInteractions: { enabled: false } },
      claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
      // Google puts these claims into the ID token.
      conformIdTokenClaims: false,
      pkce: { required: () => true },
      ttl: {
        Interaction: 600,
        Session: 600,
        Grant: 600,
        AuthorizationCode: 60,
        AccessToken: 60,
        IdToken: 60,
      },
      findAccount: (_context, sub) => ({ accountId: sub, claims: async () => ({ ...people.get(sub), sub }) }),
    });
  }

  const fake: FakeGoogle = Object.assign(state, { issuer, person: null, register, close: closing(server) });
  return fake;
}
