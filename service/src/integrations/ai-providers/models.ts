import {
  defaultBaseUrls,
  type ProviderCall,
  ProviderError,
  type ProviderId,
  type ProviderKey,
} from "./ai-provider.ts";
import type { Model } from "./answer.ts";
import { modelNotFoundError } from "./provider-errors.ts";

/** How the providers are reached. */
export interface ProviderAccess {
  fetch: typeof globalThis.fetch;
  baseUrls: Partial<Record<ProviderId, string>>;
}

/** Where a key's calls go, without a slash at the end; undefined where neither the key nor the provider says. */
export function baseUrlOf(
  { baseUrls }: Pick<ProviderAccess, "baseUrls">,
  { provider, baseUrl }: ProviderKey,
): string | undefined {
  const own = provider === "sandbox" ? null : defaultBaseUrls[provider];
  return (baseUrl ?? baseUrls[provider] ?? own ?? undefined)?.replace(/\/+$/, "");
}

/**
 * Google alone has it in the path of the request. Whoever wrote the product may have chosen it, and shall not choose by it
 * what else is asked there with the key of whoever runs it.
 */
const MODEL_PATH = /^[\w-][\w.-]*(\/[\w-][\w.-]*)*$/;

/** The SDK's model for a call. Each provider's package is loaded with its first call. */
export async function languageModel(access: ProviderAccess, call: ProviderCall): Promise<Model> {
  const baseURL = baseUrlOf(access, call);
  if (baseURL === undefined) throw noBaseUrlError(call.provider);
  const settings = { apiKey: call.apiKey, baseURL, fetch: access.fetch };
  switch (call.provider) {
    case "openai":
      // `.chat()`: called plainly it speaks the Responses API, which proxies of OpenAI's often do not.
      return (await import("@ai-sdk/openai")).createOpenAI(settings).chat(call.model);
    case "anthropic":
      return (await import("@ai-sdk/anthropic")).createAnthropic(settings)(call.model);
    case "google":
      if (!MODEL_PATH.test(call.model)) throw modelNotFoundError(call);
      return (await import("@ai-sdk/google")).createGoogleGenerativeAI(settings)(call.model);
    case "mistral":
      return (await import("@ai-sdk/mistral")).createMistral(settings)(call.model);
    default: {
      const { compatibleModel } = await import("./compatible-model.ts");
      return compatibleModel(call.model, {
        provider: `${call.provider}.chat`,
        url: ({ path }) => `${baseURL}${path}`,
        headers: call.apiKey === "" ? {} : { authorization: `Bearer ${call.apiKey}` },
        fetch: access.fetch,
        includeUsage: true,
      });
    }
  }
}

const ownFormats: ReadonlySet<ProviderId> = new Set<ProviderId>(["anthropic", "google", "mistral"]);

/** Whether a provider answers as OpenAI's chat completions do. */
export const usesChatCompletions = (provider: ProviderId): boolean => !ownFormats.has(provider);

type CallOptions = Parameters<Model["doGenerate"]>[0];

/** The roles come from the author's list, never from text that a buyer put in. */
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

function noBaseUrlError(provider: ProviderId): ProviderError {
  const facts = { provider, attempts: 0, reason: "no_base_url" };
  return new ProviderError("PROVIDER_NOT_SUPPORTED", facts, "This key has no baseUrl to call.");
}
