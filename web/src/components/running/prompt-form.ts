import type { EstimateExecution, Execute, ExecutionDetail, ProductDetail, Variable } from "@stoa/sdk";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useState } from "react";
import { EXPECTED_TOKENS } from "../../lib/run-costs.ts";
import { readDraft, writeDraft } from "../../lib/run-drafts.ts";
import { useDebounced } from "../../lib/use-debounced.ts";
import { estimateQuery, versionQuery } from "../../queries/running.ts";
import { defaultKey, type KeyChoice, type Target } from "./run-target.ts";
import { defaultValues, findValueErrors, sentValues, type VariableValues } from "./variable-fields.tsx";

/** As typed; empty: not set. */
export interface Limits {
  maxTokens: string;
  temperature: string;
  maxCost: string;
}

export interface PromptDraft {
  values: VariableValues;
  target: Target;
  limits: Limits;
  /** The newest version at that time: a draft does not hold a product back at an older one. */
  newest: string;
}

const NO_LIMITS: Limits = { maxTokens: "", temperature: "", maxCost: "" };
const SETTLE_MS = 350;

interface PromptFormInput {
  product: ProductDetail;
  keys: KeyChoice[];
  /** Whose values the form starts with, and whether they come before what was typed earlier. */
  earlier: { execution: ExecutionDetail; isWanted: boolean } | null;
  version: string | undefined;
}

/** The form of a prompt: values of its variables, and what the run uses. */
export function usePromptForm({ product, keys, earlier, version }: PromptFormInput) {
  const [draft, setDraft] = useState(() => firstDraft({ product, keys, earlier, version }));
  useEffect(() => writeDraft(product.id, draft), [product.id, draft]);
  const variables = useVariables(product, draft.target.version);
  const setTarget = useCallback(
    (change: Partial<Target>) => setDraft((old) => ({ ...old, target: { ...old.target, ...change } })),
    [],
  );
  const setValue = (name: string, value: string) =>
    setDraft((old) => ({ ...old, values: { ...old.values, [name]: value } }));
  const setLimits = (change: Partial<Limits>) =>
    setDraft((old) => ({ ...old, limits: { ...old.limits, ...change } }));
  return {
    ...draft,
    variables,
    setTarget,
    setValue,
    setLimits,
    valueErrors: findValueErrors(variables, draft.values),
    limitErrors: findLimitErrors(draft.limits),
  };
}

export type PromptForm = ReturnType<typeof usePromptForm>;

function firstDraft({ product, keys, earlier, version }: PromptFormInput): PromptDraft {
  const kept = readDraft<PromptDraft>(product.id);
  const ran = earlier && (earlier.isWanted || !kept) ? earlier.execution : null;
  const standard: PromptDraft = {
    values: defaultValues(product.variables),
    target: { keyId: defaultKey(keys)?.id ?? "", model: "", version: version ?? product.version },
    limits: NO_LIMITS,
    newest: product.version,
  };
  const draft = ran ? draftOf(ran, keys, standard) : keptDraft(kept, standard, version);
  // The key may be gone since.
  const hasKey = keys.some(({ id }) => id === draft.target.keyId);
  return hasKey ? draft : { ...draft, target: { ...standard.target, version: draft.target.version } };
}

function keptDraft(
  kept: PromptDraft | null,
  standard: PromptDraft,
  version: string | undefined,
): PromptDraft {
  if (!kept) return standard;
  const isCurrent = kept.newest === standard.newest && version === undefined;
  const target = isCurrent ? kept.target : { ...kept.target, version: standard.target.version };
  return { ...standard, ...kept, target, newest: standard.newest };
}

function draftOf(run: ExecutionDetail, keys: KeyChoice[], standard: PromptDraft): PromptDraft {
  const key = keys.find(({ provider }) => provider === run.provider);
  const target = {
    ...standard.target,
    ...(key && { keyId: key.id, model: run.model ?? "" }),
    version: run.productVersion,
  };
  return { ...standard, target, values: { ...standard.values, ...textsOf(run.variables) } };
}

const textsOf = (values: Record<string, unknown> | null): VariableValues =>
  Object.fromEntries(Object.entries(values ?? {}).map(([name, value]) => [name, String(value)]));

/** Versions differ in their variables. */
export function useVariables(product: ProductDetail, version: string): Variable[] {
  const isNewest = version === product.version;
  const { data } = useQuery({ ...versionQuery(product.id, version), enabled: !isNewest });
  return (isNewest ? undefined : data?.variables) ?? product.variables;
}

function findLimitErrors({ maxTokens, temperature, maxCost }: Limits): Partial<Record<keyof Limits, string>> {
  const isBetween = (text: string, min: number, max: number) =>
    text === "" || (Number(text) >= min && Number(text) <= max);
  return {
    ...(!(isBetween(maxTokens, 1, 1_000_000) && Number.isInteger(Number(maxTokens))) && {
      maxTokens: "Enter a whole number from 1 to 1,000,000.",
    }),
    ...(!isBetween(temperature, 0, 2) && { temperature: "Enter a number from 0 to 2." }),
    ...((!isBetween(maxCost, 0, 10_000) || Number(maxCost) < 0 || maxCost === "0") && {
      maxCost: "Enter an amount above $0.",
    }),
  };
}

interface RequestParts {
  product: ProductDetail;
  variables: Variable[];
  values: VariableValues;
  target: Target;
  limits: Limits;
}

export function toExecute({ product, variables, values, target, limits }: RequestParts): Execute {
  const { maxTokens, temperature, maxCost } = limits;
  const options = {
    ...(target.model !== "" && { model: target.model }),
    ...(target.version !== product.version && { version: target.version }),
    ...(maxTokens !== "" && { maxTokens: Number(maxTokens) }),
    ...(temperature !== "" && { temperature: Number(temperature) }),
    ...(maxCost !== "" && { maxCost: Number(maxCost) }),
  };
  return {
    productId: product.id,
    apiKeyId: target.keyId,
    variables: sentValues(variables, values),
    ...(Object.keys(options).length > 0 && { options }),
  };
}

/** Without a limit of the answer, it is estimated with the expected number of tokens. */
function toEstimate({ productId, apiKeyId, variables, draft, options }: Execute): EstimateExecution {
  const { model, version, maxTokens = EXPECTED_TOKENS } = options ?? {};
  return {
    productId,
    apiKeyId,
    ...(variables && { variables }),
    ...(draft && { draft }),
    options: { ...(model !== undefined && { model }), ...(version !== undefined && { version }), maxTokens },
  };
}

/** What a run would cost, once the form is complete and at rest. */
export function useEstimate(request: Execute, isComplete: boolean) {
  const body = JSON.stringify(toEstimate(request));
  const settled = useDebounced(body, SETTLE_MS);
  const query = useQuery({
    ...estimateQuery(JSON.parse(settled) as EstimateExecution),
    // What was typed before it was complete would be refused.
    enabled: isComplete && settled === body,
    placeholderData: keepPreviousData,
  });
  return isComplete ? query : { data: undefined, error: null };
}
