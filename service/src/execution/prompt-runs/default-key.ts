import { providers } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { ruleViolation } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import {
  anyModelProviders,
  defaultModels,
  type ProviderId,
} from "../../integrations/ai-providers/ai-provider.ts";
import { toUsableKey } from "../provider-keys/provider-keys.ts";
import { type KeyRow, listValidKeys } from "../provider-keys/queries.ts";
import type { Product } from "./prepare-run.ts";
import { mustBeReachable } from "./run-prompt.ts";

/**
 * The key of a run whose request names none: the caller's newest valid and reachable key for which the model is known. Else the
 * sandbox, in the test environment.
 */
export async function findDefaultKey(
  ctx: Context,
  caller: Member,
  product: Product,
  model: string | undefined,
): Promise<string> {
  const isKnown = (provider: ProviderId) => model ?? product.models[provider] ?? defaultModels[provider];
  const fits = (provider: ProviderId) =>
    anyModelProviders.has(provider) || product.compatibility.includes(provider);
  const usable = providers.filter((provider) => fits(provider) && isKnown(provider));
  const key = findReachable(ctx, await listValidKeys(ctx.db, caller.userId, usable));
  if (key) return toId("pkey", key.id);
  if (isSandboxDefault(ctx)) return "sandbox";
  throw ruleViolation("apiKeyId", `is needed: you have no valid key of ${usable.join(", ")}`);
}

/** Whether runs without a key use the sandbox. */
export const isSandboxDefault = ({ config }: Context): boolean =>
  config.sandbox && config.environment === "test";

/** The caller's newest valid key of each provider, by provider. */
export async function listNewestKeys(ctx: Context, caller: Member): Promise<Record<string, string>> {
  const byProvider = Map.groupBy(await listValidKeys(ctx.db, caller.userId), ({ provider }) => provider);
  return Object.fromEntries(
    [...byProvider].map(([provider, keys]) => [
      provider,
      toId("pkey", required(findReachable(ctx, keys), "a reachable key").id),
    ]),
  );
}

/** The first key with a closed circuit. If all are open, the first one, whose error the caller then gets. */
function findReachable(ctx: Context, keys: KeyRow[]): KeyRow | undefined {
  const isReachable = (key: KeyRow) => {
    try {
      mustBeReachable(ctx, toUsableKey(ctx, key));
      return true;
    } catch {
      return false;
    }
  };
  return keys.find(isReachable) ?? keys[0];
}
