import {
  defaultBaseUrls,
  type ProviderCall,
  ProviderError,
  type ProviderId,
  type ProviderKey,
} from "./ai-provider.ts";
import type { Model } from "./answer.ts";
import { modelNotFoundError } from "./provider-errors.ts";

export interface ProviderAccess {
  fetch: typeof globalThis.fetch;
  baseUrls: Partial<Record<ProviderId, string>>;
}

/** The base URL without a trailing slash; undefined: neither the key nor the provider has one. */
export function baseUrlOf(
  { baseUrls }: Pick<ProviderAccess, "baseUrls">,
  { provider, baseUrl }: ProviderKey,
): string | undefined {
  const own = provider === "sandbox" ? null : defaultBaseUrls[provider];
  return (baseUrl ?? baseUrls[provider] ?? own ?? undefined)?.replace(/\/+$/, "");
}

/**
 * Google has the model name in the path. The author of a product may choose it, and must not choose another path for a buyer's key.
 */
const MODEL_PATH = /^[\w-][\w.-]*(\/[\w-][\w.-]*)*$/;

/** The providers whose requests a package builds; chat-request.ts builds those of the others. */
type PackagedProvider = "openai" | "anthropic" | "google" | "mistral";

const packaged: ReadonlySet<ProviderId> = new Set<PackagedProvider>([
  "openai",
  "anthropic",
  "google",
  "mistral",
]);

export const hasPackage = (call: ProviderCall): call is ProviderCall & { provider: PackagedProvider } =>
  packaged.has(call.provider);

/** Loads the provider's package with its first call. */
export async function languageModel(
  access: ProviderAccess,
  call: ProviderCall & { provider: PackagedProvider },
): Promise<Model> {
  const settings = { apiKey: call.apiKey, baseURL: mustHaveBaseUrl(access, call), fetch: access.fetch };
  switch (call.provider) {
    case "openai":
      // Without `.chat()` the SDK uses the Responses API, which many proxies do not support.
      return (await import("@ai-sdk/openai")).createOpenAI(settings).chat(call.model);
    case "anthropic":
      return (await import("@ai-sdk/anthropic")).createAnthropic(settings)(call.model);
    case "google":
      if (!MODEL_PATH.test(call.model)) throw modelNotFoundError(call);
      return (await import("@ai-sdk/google")).createGoogleGenerativeAI(settings)(call.model);
    case "mistral":
      return (await import("@ai-sdk/mistral")).createMistral(settings)(call.model);
  }
}

const ownFormats: ReadonlySet<ProviderId> = new Set<ProviderId>(["anthropic", "google", "mistral"]);

export const usesChatCompletions = (provider: ProviderId): boolean => !ownFormats.has(provider);

type CallOptions = Parameters<Model["doGenerate"]>[0];

/** The roles come from the author's messages, never from a buyer's values. */
export const callOptions = ({ messages, options }: ProviderCall, signal: AbortSignal): CallOptions => ({
  prompt: messages.map(({ role, content }) =>
    role === "system" ? { role, content } : { role, content: [{ type: "text", text: content }] },
  ),
  ...(options.temperature !== undefined && { temperature: options.temperature }),
  ...maxOutputTokensOf(options),
  abortSignal: signal,
});

function maxOutputTokensOf({ maxTokens, capTokens }: ProviderCall["options"]) {
  const maxOutputTokens = maxTokens ?? capTokens;
  return maxOutputTokens === undefined ? {} : { maxOutputTokens };
}

export function mustHaveBaseUrl(access: Pick<ProviderAccess, "baseUrls">, call: ProviderKey): string {
  const baseUrl = baseUrlOf(access, call);
  if (baseUrl === undefined) throw noBaseUrlError(call.provider);
  return baseUrl;
}

function noBaseUrlError(provider: ProviderId): ProviderError {
  const info = { provider, attempts: 0, reason: "no_base_url" };
  return new ProviderError("PROVIDER_NOT_SUPPORTED", info, "This key has no baseUrl to call.");
}
