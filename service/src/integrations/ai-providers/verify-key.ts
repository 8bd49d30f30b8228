import type { KeyStatus, ProviderKey } from "./ai-provider.ts";
import { baseUrlOf, type ProviderAccess } from "./models.ts";
import { toFailure } from "./provider-errors.ts";

/** The request that stores a key waits for this. */
export const VERIFY_MS = 5_000;

/** Lists models, which is free and requires a valid key. */
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
  // OpenRouter's list of models is public, so it does not verify a key.
  if (provider === "openrouter") return "/key";
  return provider === "google" ? "/models?pageSize=1" : "/models";
}

function credential({ provider, apiKey }: ProviderKey): Record<string, string> {
  if (provider === "anthropic") return { "x-api-key": apiKey, "anthropic-version": "2023-06-01" };
  if (provider === "google") return { "x-goog-api-key": apiKey };
  // A local server may need no key.
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

/** A key without the right to list, without credit or over its rate limit is still valid. */
const keyStatuses: ReadonlyMap<string, KeyStatus> = new Map<string, KeyStatus>([
  ["PROVIDER_KEY_INVALID", "invalid"],
  ["PROVIDER_PERMISSION_DENIED", "valid"],
  ["PROVIDER_QUOTA_EXHAUSTED", "valid"],
  ["PROVIDER_RATE_LIMITED", "valid"],
]);
