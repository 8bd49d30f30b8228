import type { AiModel, ProductDetail, ProviderKey } from "@stoa/sdk";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { providerName, runsEveryProduct } from "../../lib/providers.ts";
import { keysQuery, modelsQuery } from "../../queries/running.ts";

/** What a run uses: a provider key, a model and a version. */
export interface Target {
  keyId: string;
  /** Empty: none is chosen yet. */
  model: string;
  version: string;
}

export type KeyChoice = Pick<ProviderKey, "id" | "provider" | "name" | "last4" | "status">;

const SANDBOX: KeyChoice = { id: "sandbox", provider: "sandbox", name: "", last4: "", status: "valid" };

/** The keys that can run something of these providers, and the sandbox where the service has it. */
export function useKeyChoices(providers: string[]): KeyChoice[] {
  const { data: keys } = useSuspenseQuery(keysQuery);
  const { data: sandbox } = useSuspenseQuery(modelsQuery("sandbox"));
  const fits = ({ provider }: KeyChoice) => providers.includes(provider) || runsEveryProduct(provider);
  return [...keys.filter(fits), ...(sandbox.length > 0 ? [SANDBOX] : [])];
}

export const defaultKey = (keys: KeyChoice[]): KeyChoice | undefined =>
  keys.find(({ status }) => status !== "invalid") ?? keys[0];

export const keyLabel = ({ provider, name, last4 }: KeyChoice): string =>
  provider === "sandbox" ? "Sandbox, asks no model" : `${providerName(provider)}: ${name}, ends in ${last4}`;

/** The models of a provider with a price. While they load: none. */
export function useModels(provider: string | undefined, mode: AiModel["mode"] = "chat"): AiModel[] {
  const { data } = useQuery({ ...modelsQuery(provider ?? "", mode), enabled: provider !== undefined });
  return data ?? [];
}

/** The model that a run takes if none is named; empty: it must be named. */
export const defaultModel = (product: ProductDetail, provider: string, models: AiModel[]): string =>
  product.models[provider] ?? models.find(({ isDefault }) => isDefault)?.id ?? "";
