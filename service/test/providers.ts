import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { inspect } from "node:util";
import { providers as allProviders } from "@stoa/contract";
import { parseAllowedTargets } from "../src/core/config/allowed-targets.ts";
import {
  type AiProviders,
  type ProviderCall,
  ProviderError,
  type ProviderId,
} from "../src/integrations/ai-providers/ai-provider.ts";
import {
  createSdkProviders,
  type SdkProvidersOptions,
} from "../src/integrations/ai-providers/sdk-providers.ts";
import { createGuardedFetch, type FetchLimits } from "../src/integrations/egress/guarded-fetch.ts";
import { GOOD_KEY, startProviderServer } from "./provider-server.ts";

export const formats = ["openai", "anthropic", "google"] as const;
/** No error may contain this text. */
export const PROMPT_MARKER = "the-secret-of-the-author";

export interface TestProviderOptions extends Partial<SdkProvidersOptions> {
  limits?: Partial<FetchLimits>;
}

/** All providers on one local server, through production's guarded fetch. `sleeps` records the requested waits. */
export async function openTestProviders(t: TestContext, { limits, ...options }: TestProviderOptions = {}) {
  const server = await startProviderServer();
  const guard = { allowed: parseAllowedTargets("loopback"), own: () => null, ownPathsAllowed: [] };
  const safe = createGuardedFetch(guard, {
    connectMs: 10_000,
    headersMs: 10_000,
    bodyIdleMs: 10_000,
    maxResponseBytes: 1_000_000,
    ...limits,
  });
  t.after(() => Promise.all([server.close(), safe.close()]));
  const sleeps: number[] = [];
  const providers = createSdkProviders({
    ...safe,
    baseUrls: Object.fromEntries(allProviders.map((id) => [id, server.url])),
    sleep: async (ms) => void sleeps.push(ms),
    random: () => 0.5,
    ...options,
  });
  return { server, providers, sleeps };
}

export function providerCall(provider: ProviderId, more: Partial<ProviderCall> = {}): ProviderCall {
  return {
    provider,
    apiKey: GOOD_KEY,
    baseUrl: null,
    model: "some-model",
    messages: [
      { role: "system", content: `Instructions: ${PROMPT_MARKER}` },
      { role: "user", content: `Do ${PROMPT_MARKER}` },
    ],
    options: {},
    signal: new AbortController().signal,
    ...more,
  };
}

/** Returns the call's error. Asserts that it is a ProviderError without the sent text. */
export async function providerErrorOf(providers: AiProviders, call: ProviderCall): Promise<ProviderError> {
  const fault = await providers.run(call).then(
    () => assert.fail("the call should have failed"),
    (error: unknown) => error,
  );
  assert.ok(fault instanceof ProviderError, inspect(fault));
  mustNotTell(fault, PROMPT_MARKER);
  mustNotTell(fault, call.apiKey);
  return fault;
}

function mustNotTell(fault: ProviderError, secret: string): void {
  const everything = [
    inspect(fault, { depth: Number.POSITIVE_INFINITY, showHidden: true, getters: true }),
    JSON.stringify(fault),
    JSON.stringify(fault.details),
    fault.message,
    fault.stack,
    inspect(fault.cause),
  ];
  for (const text of everything) assert.ok(!text?.includes(secret), `a fault tells ${secret}: ${text}`);
}
