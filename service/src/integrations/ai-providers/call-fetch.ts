import type { FetchOptions, PostText } from "../egress/guarded-fetch.ts";
import type { ProviderCall } from "./ai-provider.ts";

type Fetch = typeof globalThis.fetch;

/** The deadline of a call, whose progress is updated when the provider has the request. */
export const fetchOptionsOf = ({
  timeoutMs,
  progress,
}: Pick<ProviderCall, "timeoutMs" | "progress">): FetchOptions => ({
  silenceMs: timeoutMs,
  onSent: () => {
    if (progress) progress.isSent = true;
  },
});

/** The guarded fetch with the options of a call. */
export const fetchForCall =
  (fetch: Fetch, call: Pick<ProviderCall, "timeoutMs" | "progress">): Fetch =>
  (input, init) => {
    const options: RequestInit & FetchOptions = { ...init, ...fetchOptionsOf(call) };
    return fetch(input, options);
  };

/** `postText` on top of any fetch; tests use it. */
export const postTextBy =
  (fetch: Fetch): PostText =>
  async (url, request) => {
    const { status, headers, body } = await fetch(url, { ...request, method: "POST" });
    return { status, headers: Object.fromEntries(headers), body };
  };
