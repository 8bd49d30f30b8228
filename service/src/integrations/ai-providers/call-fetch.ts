import type { FetchOptions } from "../egress/guarded-fetch.ts";
import type { ProviderCall } from "./ai-provider.ts";

type Fetch = typeof globalThis.fetch;

/** The guarded fetch with the deadline of a call, whose progress it updates when the provider has the request. */
export const fetchForCall =
  (fetch: Fetch, { timeoutMs, progress }: Pick<ProviderCall, "timeoutMs" | "progress">): Fetch =>
  (input, init) => {
    const options: RequestInit & FetchOptions = {
      ...init,
      silenceMs: timeoutMs,
      onSent: () => {
        if (progress) progress.isSent = true;
      },
    };
    return fetch(input, options);
  };
