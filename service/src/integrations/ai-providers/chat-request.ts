import type { FetchOptions, PlainResponse, PostText } from "../egress/guarded-fetch.ts";
import type { ProviderCall } from "./ai-provider.ts";
import { mustHaveBaseUrl, type ProviderAccess } from "./models.ts";

/**
 * Sends a call in OpenAI's format to a server that needs no package. Building this body with the package for such servers takes a
 * quarter of a call's CPU time.
 */
export function sendChatRequest(
  access: Pick<ProviderAccess, "baseUrls"> & { postText: PostText },
  call: ProviderCall,
  fetchOptions: FetchOptions & { signal: AbortSignal },
): Promise<PlainResponse> {
  const { model, messages, options } = call;
  return access.postText(`${mustHaveBaseUrl(access, call)}/chat/completions`, {
    ...fetchOptions,
    headers: {
      "content-type": "application/json",
      ...(call.apiKey !== "" && { authorization: `Bearer ${call.apiKey}` }),
    },
    body: JSON.stringify({
      model,
      max_tokens: options.maxTokens ?? options.capTokens,
      temperature: options.temperature,
      messages: messages.map(({ role, content }) => ({ role, content })),
      stream: true,
      stream_options: { include_usage: true },
    }),
  });
}
