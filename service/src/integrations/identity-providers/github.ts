import type { Configuration } from "openid-client";
import { z } from "zod";
import type { SocialProvider } from "../../core/config/config.ts";
import { IdentityProblem, toIdentityProblem } from "./identity-problem.ts";
import type { IdentityProvider } from "./identity-provider.ts";
import { openidClient } from "./openid-client.ts";

const User = z.object({ id: z.int().min(1), login: z.string(), name: z.string().nullish() });
const Emails = z.array(z.object({ email: z.string(), primary: z.boolean(), verified: z.boolean() }));

/** OAuth 2 with PKCE; the user's identity comes from GitHub's API. */
export function createGithubProvider(client: SocialProvider, timeoutMs: number): IdentityProvider {
  const configuration = deferConfiguration(client, timeoutMs);
  const api = client.issuer === "https://github.com" ? "https://api.github.com" : client.issuer;

  return {
    async authorizationUrl(callback, { state, codeVerifier }) {
      const { buildAuthorizationUrl, calculatePKCECodeChallenge } = openidClient();
      return buildAuthorizationUrl(configuration(), {
        redirect_uri: callback.href,
        scope: "read:user user:email",
        state,
        code_challenge: await calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: "S256",
      });
    },
    async identify(callback, { state, codeVerifier }) {
      try {
        const checks = { expectedState: state, pkceCodeVerifier: codeVerifier };
        const { access_token: token } = await openidClient().authorizationCodeGrant(
          configuration(),
          callback,
          checks,
        );
        const [user, emails] = await Promise.all([
          fetchResource(configuration(), new URL(`${api}/user`), token, User),
          fetchResource(configuration(), new URL(`${api}/user/emails`), token, Emails),
        ]);
        const email = emails.find(({ primary, verified }) => primary && verified)?.email ?? null;
        return { subject: String(user.id), name: user.name || user.login, verifiedEmail: email };
      } catch (error) {
        throw toIdentityProblem(error);
      }
    },
  };
}

async function fetchResource<T>(
  configuration: Configuration,
  url: URL,
  accessToken: string,
  schema: z.ZodType<T>,
): Promise<T> {
  const headers = new Headers({ accept: "application/vnd.github+json" });
  const response = await openidClient().fetchProtectedResource(
    configuration,
    accessToken,
    url,
    "GET",
    null,
    headers,
  );
  if (response.status !== 200)
    throw new IdentityProblem("unreachable", `${url.pathname} answered ${response.status}`);
  const answer = schema.safeParse(await response.json());
  if (!answer.success) throw new IdentityProblem("unreachable", `${url.pathname} answered another shape`);
  return answer.data;
}

function deferConfiguration(client: SocialProvider, timeoutMs: number): () => Configuration {
  let configuration: Configuration | undefined;
  return () => (configuration ??= configurationOf(client, timeoutMs));
}

function configurationOf({ issuer, clientId, clientSecret }: SocialProvider, timeoutMs: number) {
  const { allowInsecureRequests, Configuration } = openidClient();
  const configuration = new Configuration(
    {
      // GitHub's `iss` since 2026 (RFC 9207); the library refuses another name as a mix-up.
      issuer: `${issuer}/login/oauth`,
      authorization_endpoint: `${issuer}/login/oauth/authorize`,
      token_endpoint: `${issuer}/login/oauth/access_token`,
    },
    clientId,
    clientSecret,
  );
  configuration.timeout = timeoutMs / 1000;
  if (issuer.startsWith("http:")) allowInsecureRequests(configuration);
  return configuration;
}
