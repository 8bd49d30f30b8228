import type { Model } from "./ai-provider.answer.ts";
import {
  defaultBaseUrls,
  type ProviderCall,
  ProviderFault,
  type ProviderId,
  type ProviderKey,
} from "./ai-provider.ts";

/** How the providers are reached. */
export interface Access {
  fetch: typeof globalThis.fetch;
  baseUrls: Partial<Record<ProviderId, string>>;
}

/** Where a key's calls go, without a slash at the end; undefined where neither the key nor the provider says. */
export function baseUrlOf({ baseUrls }: Access, { provider, baseUrl }: ProviderKey): string | undefined {
  const own = provider === "sandbox" ? null : defaultBaseUrls[provider];
  return (baseUrl ?? baseUrls[provider] ?? own ?? undefined)?.replace(/\/+$/, "");
}

/** The SDK's model for a call. Each provider's package is loaded with its first call. */
export async function languageModel(access: Access, call: ProviderCall): Promise<Model> {
  const baseURL = baseUrlOf(access, call);
  if (baseURL === undefined) throw unusable(call.provider);
  const settings = { apiKey: call.apiKey, baseURL, fetch: access.fetch };
  switch (call.provider) {
    case "openai":
      // `.chat()`: called plainly it speaks the Responses API, which proxies of OpenAI's often do not.
      return (await import("@ai-sdk/openai")).createOpenAI(settings).chat(call.model);
    case "anthropic":
      return (await import("@ai-sdk/anthropic")).createAnthropic(settings)(call.model);
    case "google":
      return (await import("@ai-sdk/google")).createGoogleGenerativeAI(settings)(call.model);
    case "mistral":
      return (await import("@ai-sdk/mistral")).createMistral(settings)(call.model);
    default: {
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      return createOpenAICompatible({ ...settings, name: call.provider, includeUsage: true })(call.model);
    }
  }
}

type CallOptions = Parameters<Model["doGenerate"]>[0];

/** The roles come from the author's list, never from text that a buyer put in. */
export const callOptions = ({ messages, options }: ProviderCall, signal: AbortSignal): CallOptions => ({
  prompt: messages.map(({ role, content }) =>
    role === "system" ? { role, content } : { role, content: [{ type: "text", text: content }] },
  ),
  ...(options.temperature !== undefined && { temperature: options.temperature }),
  ...(options.maxTokens !== undefined && { maxOutputTokens: options.maxTokens }),
  abortSignal: signal,
});

function unusable(provider: ProviderId): ProviderFault {
  const facts = { provider, attempts: 0, reason: "no_base_url" };
  return new ProviderFault("PROVIDER_NOT_SUPPORTED", facts, "This key has no baseUrl to call.");
}
