import type { KeyStatus, ProviderKey } from "./ai-provider.ts";
import { baseUrlOf, type ProviderAccess } from "./models.ts";
import { toFailure } from "./provider-errors.ts";

/** Storing a key waits for it, and may be told nothing. */
export const VERIFY_MS = 5_000;

/** Asks for a list of models, which every provider gives for nothing and to holders of a key only. */
export async function verifyKey(
  access: ProviderAccess & { verifyMs: number },
  key: ProviderKey,
  signal?: AbortSignal,
): Promise<KeyStatus> {
  const baseUrl = baseUrlOf(access, key);
  if (baseUrl === undefined) return "unreachable";
  const timeout = AbortSignal.timeout(access.verifyMs);
  try {
    const response = await access.fetch(`${baseUrl}${listingPath(key)}`, {
      headers: credential(key),
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    return await readKeyStatus(response, key);
  } catch {
    signal?.throwIfAborted();
    return "unreachable";
  }
}

function listingPath({ provider }: ProviderKey): string {
  // OpenRouter's list of models is open to everyone, so it says nothing about a key.
  if (provider === "openrouter") return "/key";
  return provider === "google" ? "/models?pageSize=1" : "/models";
}

function credential({ provider, apiKey }: ProviderKey): Record<string, string> {
  if (provider === "anthropic") return { "x-api-key": apiKey, "anthropic-version": "2023-06-01" };
  if (provider === "google") return { "x-goog-api-key": apiKey };
  // A local server may have no key at all.
  return apiKey === "" ? {} : { authorization: `Bearer ${apiKey}` };
}

async function readKeyStatus(response: Response, key: ProviderKey): Promise<KeyStatus> {
  if (response.ok) {
    await response.body?.cancel();
    return "valid";
  }
  const thrown = { statusCode: response.status, responseBody: await response.text() };
  const { code } = toFailure(thrown, { provider: key.provider, model: "" }, 1).error;
  return keyStatuses.get(code) ?? "unreachable";
}

/** A key that may not list models, owes money or is too busy is still a key that the provider knows. */
const keyStatuses: ReadonlyMap<string, KeyStatus> = new Map<string, KeyStatus>([
  ["PROVIDER_KEY_INVALID", "invalid"],
  ["PROVIDER_PERMISSION_DENIED", "valid"],
  ["PROVIDER_QUOTA_EXHAUSTED", "valid"],
  ["PROVIDER_RATE_LIMITED", "valid"],
]);
