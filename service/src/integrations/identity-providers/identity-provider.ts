import type { identityProviders } from "@stoa/contract";
import type { SocialProvider } from "../../core/config/config.ts";
import { createGithubProvider } from "./github.ts";
import { createGoogleProvider } from "./google.ts";

declare module "../../core/context.ts" {
  interface Integrations {
    identityProviders: IdentityProviders;
  }
}

export type IdentityProviderName = (typeof identityProviders)[number];

/** Values of an authorization request that its callback must match. */
export interface AuthorizationState {
  state: string;
  /** PKCE: proves that the same client requested and redeems the code. */
  codeVerifier: string;
  /** Binds the ID token to this request. */
  nonce: string;
}

/** The identity as the provider reports it. */
export interface VerifiedIdentity {
  /** The provider's permanent id of the account; an email address may move to another person. */
  subject: string;
  name: string | null;
  /** null: the provider has not verified it. */
  verifiedEmail: string | null;
}

export interface IdentityProvider {
  authorizationUrl(callback: URL, trip: AuthorizationState): Promise<URL>;
  /** Redeems the code in the callback's query. Throws an IdentityProblem. */
  identify(callback: URL, trip: AuthorizationState): Promise<VerifiedIdentity>;
}

/** null: the operator configured no client. */
export type IdentityProviders = Record<IdentityProviderName, IdentityProvider | null>;

interface IdentityProviderOptions {
  github: SocialProvider | null;
  google: SocialProvider | null;
  /** For each request. */
  timeoutMs: number;
}

export const createIdentityProviders = ({
  github,
  google,
  timeoutMs,
}: IdentityProviderOptions): IdentityProviders => ({
  github: github && createGithubProvider(github, timeoutMs),
  google: google && createGoogleProvider(google, timeoutMs),
});
