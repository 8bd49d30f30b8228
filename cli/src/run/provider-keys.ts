import type { ProductDetail, ProviderKey, Stoa } from "@stoa/sdk";
import { CommandError } from "../errors.ts";

/** Providers whose models are those of others: they fit every product that names a model. */
const ANY_MODEL: ReadonlySet<string> = new Set(["ollama", "openrouter", "openai-compatible"]);
const MAX_PAGE = 100;

export const SANDBOX = "sandbox";

/** Keys that the provider accepted, newest first. */
async function listValidKeys(stoa: Stoa): Promise<ProviderKey[]> {
  const keys = await stoa.ai.keys.list({ limit: MAX_PAGE }).toArray();
  return keys
    .filter(({ status }) => status === "valid")
    .toSorted((a, b) => b.createdAt.localeCompare(a.createdAt));
}

interface KeyRequest {
  provider?: string | undefined;
  model?: string | undefined;
}

/** The key of a run that names none: the newest valid one that fits; undefined: there is none. */
export async function findKeyFor(
  stoa: Stoa,
  { compatibility, models }: ProductDetail,
  { provider, model }: KeyRequest,
): Promise<ProviderKey | undefined> {
  const fits = (key: ProviderKey) =>
    ANY_MODEL.has(key.provider)
      ? (model ?? models[key.provider]) !== undefined
      : compatibility.includes(key.provider);
  return (await listValidKeys(stoa)).find(
    (key) => (provider === undefined || key.provider === provider) && fits(key),
  );
}

/** The newest valid key of each provider. */
export async function findKeys(stoa: Stoa): Promise<Record<string, string>> {
  const keys = await listValidKeys(stoa);
  return Object.fromEntries(keys.toReversed().map(({ provider, id }) => [provider, id]));
}

/** A service that has no sandbox reports its name as an unknown key. */
export const toSandboxError = (error: unknown, providers: readonly string[]): unknown =>
  (error as { code?: string }).code === "PROVIDER_KEY_NOT_FOUND"
    ? new CommandError(
        `You have no valid key of ${providers.join(", ")}, and this service has no sandbox`,
        `Store one: stoa keys add ${providers[0] ?? "openai"}`,
      )
    : error;
