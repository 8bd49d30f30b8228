import type { Configuration } from "openid-client";
import { z } from "zod";
import type { SocialProvider } from "../../core/config/config.ts";
import { IdentityProblem, toIdentityProblem } from "./identity-problem.ts";
import type { IdentityProvider } from "./identity-provider.ts";
import { openidClient } from "./openid-client.ts";

const Claims = z.object({
  sub: z.string().min(1).max(255),
  name: z.string().optional().catch(undefined),
  email: z.string().optional().catch(undefined),
  email_verified: z.boolean().optional().catch(undefined),
});

/** OpenID Connect with discovery: Google or another issuer. */
export function createGoogleProvider(client: SocialProvider, timeoutMs: number): IdentityProvider {
  const configuration = discoverConfiguration(client, timeoutMs);
  return {
    async authorizationUrl(callback, { state, codeVerifier, nonce }) {
      const { buildAuthorizationUrl, calculatePKCECodeChallenge } = openidClient();
      return buildAuthorizationUrl(await configuration(), {
        redirect_uri: callback.href,
        scope: "openid email profile",
        state,
        nonce,
        code_challenge: await calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: "S256",
      });
    },
    async identify(callback, { state, codeVerifier, nonce }) {
      const checks = { expectedState: state, pkceCodeVerifier: codeVerifier, expectedNonce: nonce };
      const tokens = await openidClient()
        .authorizationCodeGrant(await configuration(), callback, checks)
        .catch((error) => {
          throw toIdentityProblem(error);
        });
      const claims = Claims.safeParse(tokens.claims());
      if (!claims.success) throw new IdentityProblem("refused", "the ID token has no subject");
      const { sub, name = null, email, email_verified } = claims.data;
      return { subject: sub, name, verifiedEmail: email_verified === true ? (email ?? null) : null };
    },
  };
}

/** Discovers at the first use and caches the result; a failure is not cached. */
function discoverConfiguration({ issuer, clientId, clientSecret }: SocialProvider, timeoutMs: number) {
  let cached: Promise<Configuration> | undefined;
  const discover = () => {
    const { allowInsecureRequests, discovery } = openidClient();
    return discovery(new URL(issuer), clientId, clientSecret, undefined, {
      timeout: timeoutMs / 1000,
      execute: issuer.startsWith("http:") ? [allowInsecureRequests] : [],
    }).catch((error) => {
      cached = undefined;
      throw toIdentityProblem(error);
    });
  };
  return () => (cached ??= discover());
}
