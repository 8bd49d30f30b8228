import type { SocialProvider } from "../../core/config/config.ts";
import { createGithubProvider } from "./github.ts";
import { createGoogleProvider } from "./google.ts";

declare module "../../core/context.ts" {
  interface Integrations {
    identityProviders: IdentityProviders;
  }
}

export const identityProviderNames = ["github", "google"] as const;
export type IdentityProviderName = (typeof identityProviderNames)[number];

/** What a browser was sent away with: it must bring the same back. */
export interface AuthorizationState {
  state: string;
  /** Of PKCE: proves to the provider that who redeems the code is who asked for it. */
  codeVerifier: string;
  /** Ties an ID token to this trip. */
  nonce: string;
}

/** Who came back, in the provider's words. */
export interface VerifiedIdentity {
  /** The provider's own name for the account; it never changes, while mail addresses move to other people. */
  subject: string;
  name: string | null;
  /** null unless the provider has proven it. */
  verifiedEmail: string | null;
}

/** Where people sign in elsewhere to be known here. */
export interface IdentityProvider {
  /** Where to send the browser. */
  authorizationUrl(callback: URL, trip: AuthorizationState): Promise<URL>;
  /** Redeems what the browser brought back in the callback's query. Throws an IdentityProblem. */
  identify(callback: URL, trip: AuthorizationState): Promise<VerifiedIdentity>;
}

/** null: the operator has set up no client there. */
export type IdentityProviders = Record<IdentityProviderName, IdentityProvider | null>;

interface IdentityProviderOptions {
  github: SocialProvider | null;
  google: SocialProvider | null;
  /** Of each call. */
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
