import type { Context } from "../../core/context.ts";
import { networkUnlessLoopback } from "../../core/network.ts";
import type {
  AuthorizationState,
  IdentityProviderName,
} from "../../integrations/identity-providers/identity-provider.ts";
import { openidClient } from "../../integrations/identity-providers/openid-client.ts";
import type { Cookie } from "../../platform/http/route.ts";
import { countAttempts } from "./attempts.ts";
import { mintOneTimeToken, redeemOneTimeToken } from "./one-time-tokens.ts";

const FLOW_SECONDS = 10 * 60;

/** A sign-in in progress at a provider. */
export interface Flow extends AuthorizationState {
  returnTo: string;
}

export const flowCookieName = (provider: IdentityProviderName) => `__Host-flow-${provider}` as const;

/** Binds a sealed flow to its provider: the cookie of one cannot be used for another (mix-up attack). */
const sealContext = (provider: IdentityProviderName) => `sign-in-flow|${provider}`;

/**
 * `state` is a one-time token of ten minutes; of parallel callbacks one wins. Each leaves a row, hence the rate limit.
 */
export async function startFlow(
  ctx: Context,
  provider: IdentityProviderName,
  { returnTo, ip }: { returnTo: string; ip: string },
): Promise<Flow> {
  const state = await ctx.db.transaction().execute(async (tx) => {
    await countAttempts(ctx, tx, [["way to a provider from a network", networkUnlessLoopback(ip)]]);
    return mintOneTimeToken(ctx, tx, {
      purpose: "social",
      data: { provider },
      lifetimeMs: FLOW_SECONDS * 1000,
    });
  });
  const { randomNonce, randomPKCECodeVerifier } = openidClient();
  return { state, codeVerifier: randomPKCECodeVerifier(), nonce: randomNonce(), returnTo };
}

export const flowCookie = (ctx: Context, provider: IdentityProviderName, flow: Flow): Cookie => ({
  name: flowCookieName(provider),
  value: ctx.vault.seal(JSON.stringify(flow), sealContext(provider)),
  maxAgeSeconds: FLOW_SECONDS,
});

export const clearedFlowCookie = (provider: IdentityProviderName): Cookie => ({
  name: flowCookieName(provider),
  value: "",
  maxAgeSeconds: 0,
});

/** null: not sealed by us for this provider. */
export function readFlow(
  ctx: Context,
  provider: IdentityProviderName,
  cookie: string | undefined,
): Flow | null {
  if (!cookie) return null;
  try {
    return JSON.parse(ctx.vault.open(cookie, sealContext(provider))) as Flow;
  } catch {
    return null;
  }
}

/** Throws INVALID_TOKEN when the flow was used or has expired. */
export async function consumeFlow(ctx: Context, { state }: Flow): Promise<void> {
  await redeemOneTimeToken(ctx, ctx.db, state, ["social"]);
}
