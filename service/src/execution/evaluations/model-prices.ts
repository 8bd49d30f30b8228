import type { EvaluationStarter } from "@stoa/contract";
import { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import {
  defaultEmbeddingModels,
  defaultModels,
  type ProviderId,
} from "../../integrations/ai-providers/ai-provider.ts";
import { findListPrice, type ListPrice } from "../provider-keys/cost.ts";
import type { ColumnSpec } from "./column-run.ts";
import type { StoredJudge } from "./queries.ts";

export interface ModelPrice extends ListPrice {
  provider: ProviderId;
  model: string;
}

/** What the price list says about each model of an evaluation and its judge, with that of its embeddings. Of a workflow: the models of its own prompt steps. */
export function listModelPrices(
  columns: readonly ColumnSpec[],
  { content, at, judge }: { content: string; at: Date; judge: StoredJudge | null },
): ModelPrice[] {
  const isWorkflow = columns[0]?.provider === null;
  const called = [
    ...(isWorkflow ? listStepModels(Workflow.parse(JSON.parse(content))) : []),
    ...columns.filter(({ kind }) => kind !== "baseline"),
    ...(judge?.embedding ? [judge.embedding] : []),
  ];
  const models = called.flatMap(({ provider, model }) =>
    provider === null || model === null ? [] : [{ provider: provider as ProviderId, model }],
  );
  const byName = new Map(models.map((one) => [keyOf(one), one]));
  return [...byName.values()].map((one) => ({ ...one, ...findListPrice({ ...one, at }) }));
}

const listStepModels = ({ steps }: Workflow) =>
  steps
    .map((step) => (step.type === "map" ? step.do : step))
    .flatMap((step) => {
      if (step.type === "prompt")
        return [{ provider: step.provider, model: step.model ?? defaultModels[step.provider] }];
      if (step.type === "embedding")
        return [{ provider: step.provider, model: step.model ?? defaultEmbeddingModels[step.provider] }];
      return [];
    });

const keyOf = ({ provider, model }: Pick<ModelPrice, "provider" | "model">) => `${provider} ${model}`;

/** Why the list of today asks for another evaluation; null: nothing changed. */
export function findPriceChange(
  before: readonly ModelPrice[],
  now: readonly ModelPrice[],
): Extract<EvaluationStarter, "model_deprecated" | "price_changed"> | null {
  const today = new Map(now.map((one) => [keyOf(one), one]));
  const pairs = before.flatMap((old) => {
    const one = today.get(keyOf(old));
    return one ? [{ old, one }] : [];
  });
  if (pairs.some(({ old, one }) => one.isDeprecated && !old.isDeprecated)) return "model_deprecated";
  const hasChanged = pairs.some(
    ({ old, one }) => old.promptPrice !== one.promptPrice || old.completionPrice !== one.completionPrice,
  );
  return hasChanged ? "price_changed" : null;
}
