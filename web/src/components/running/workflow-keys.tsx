import { useQueryClient } from "@tanstack/react-query";
import { providerName, runsEveryProduct } from "../../lib/providers.ts";
import { providersOf, runsProducts, type WorkflowDefinition } from "../../lib/workflow-definition.ts";
import { keysQuery } from "../../queries/running.ts";
import { defaultKey, type KeyChoice, useKeyChoices } from "./run-target.ts";
import { KeyField } from "./target-fields.tsx";

export interface WorkflowKeys {
  /** By provider; undefined: there is none. */
  chosen: Record<string, KeyChoice | undefined>;
  /** What a run gets: also keys for the products in its steps. */
  apiKeys: Record<string, string>;
  isComplete: boolean;
  keysFor: (provider: string) => KeyChoice[];
}

/** A key for each provider that the steps call. `picked` has the ids that the reader chose. */
export function useWorkflowKeys(
  definition: WorkflowDefinition,
  picked: Record<string, string>,
): WorkflowKeys {
  const client = useQueryClient();
  const providers = providersOf(definition);
  const all = useKeyChoices(providers);
  const keysFor = (provider: string) =>
    all.filter((key) => key.provider === provider || runsEveryProduct(key.provider));
  const chosen = Object.fromEntries(
    providers.map((provider) => [provider, chosenKey(keysFor(provider), picked[provider], provider)]),
  );
  const stored = client.getQueryData(keysQuery.queryKey) ?? [];
  const apiKeys = { ...(runsProducts(definition) && keysOfProducts(stored, all)), ...ids(chosen) };
  return { chosen, apiKeys, keysFor, isComplete: Object.values(chosen).every((key) => key !== undefined) };
}

/** The chosen key, else the newest of the provider itself, else one that serves every model. */
const chosenKey = (keys: KeyChoice[], id: string | undefined, provider: string): KeyChoice | undefined =>
  keys.find((key) => key.id === id) ??
  keys.find((key) => key.provider === provider && key.status !== "invalid") ??
  defaultKey(keys);

const ids = (chosen: Record<string, KeyChoice | undefined>): Record<string, string> =>
  Object.fromEntries(Object.entries(chosen).flatMap(([provider, key]) => (key ? [[provider, key.id]] : [])));

/** Which provider a product in a step uses is not known here: it takes the first key that fits. */
const keysOfProducts = (stored: { id: string; provider: string; status: string }[], all: KeyChoice[]) => ({
  ...Object.fromEntries(
    stored
      .filter(({ status }) => status !== "invalid")
      .toReversed()
      .map(({ id, provider }) => [provider, id]),
  ),
  ...(all.some(({ id }) => id === "sandbox") && { sandbox: "sandbox" }),
});

interface WorkflowKeyFieldsProps {
  keys: WorkflowKeys;
  errors: Record<string, string>;
  onPick: (provider: string, keyId: string) => void;
}

export const WorkflowKeyFields = ({ keys: { chosen, keysFor }, errors, onPick }: WorkflowKeyFieldsProps) =>
  Object.entries(chosen)
    .filter(([provider]) => provider !== "sandbox")
    .map(([provider, key]) => (
      <KeyField
        key={provider}
        label={`Key for ${providerName(provider)}`}
        providers={[provider]}
        keys={keysFor(provider)}
        value={key?.id ?? ""}
        error={errors[`apiKeys.${provider}`]}
        onChange={(keyId) => onPick(provider, keyId)}
      />
    ));
