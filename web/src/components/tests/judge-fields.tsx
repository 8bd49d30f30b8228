import type { EvaluateProduct, TestSet } from "@stoa/sdk";
import { EMBEDDING_PROVIDERS, PROVIDERS } from "../../lib/providers.ts";
import { CheckRow } from "../check-row.tsx";
import { type KeyChoice, type Target, useKeyChoices } from "../running/run-target.ts";
import { TargetFields } from "../running/target-fields.tsx";
import { useTestedProduct } from "./tested-product.ts";

/** The models that judge. */
export interface Judge {
  model: Target;
  /** null: nothing is compared. */
  embedding: Target | null;
}

/** Keys of all providers: a judge runs no product. */
export const useJudgeKeys = () => ({
  model: useKeyChoices(PROVIDERS),
  embedding: useKeyChoices(EMBEDDING_PROVIDERS),
});

const JUDGED = /^(?:not-)?(?:llm-rubric|factuality)$/;
const COMPARED = /^(?:not-)?(?:similar|answer-relevance)$/;

const hasType = ({ cases }: TestSet, types: RegExp): boolean =>
  cases.some(({ assert }) =>
    assert?.some(({ type, assert: members }) =>
      [type, ...(members ?? []).map((one) => one.type)].some((one) => types.test(one)),
    ),
  );

const comparesEmbeddings = (testSet: TestSet): boolean => hasType(testSet, COMPARED);

/** Whether a judge has something to decide. */
export const canBeJudged = (testSet: TestSet): boolean =>
  hasType(testSet, JUDGED) || comparesEmbeddings(testSet);

export const isCompleteJudge = ({ model, embedding }: Judge): boolean =>
  [model, ...(embedding ? [embedding] : [])].every((target) => target.keyId !== "" && target.model !== "");

const toModel = ({ keyId, model }: Target) => ({ apiKeyId: keyId, model });

export const toJudgeRequest = ({ model, embedding }: Judge): EvaluateProduct["judge"] => ({
  ...toModel(model),
  ...(embedding && { embedding: toModel(embedding) }),
});

interface JudgeFieldsProps {
  testSet: TestSet;
  /** null: nothing is judged. */
  judge: Judge | null;
  keys: ReturnType<typeof useJudgeKeys>;
  errors: Record<string, string>;
  onChange: (judge: Judge | null) => void;
}

/** Whether a model judges the rubrics, and which. */
export function JudgeFields({ testSet, judge, keys, errors, onChange }: JudgeFieldsProps) {
  const product = useTestedProduct();
  const canCompare = comparesEmbeddings(testSet);
  const newTarget = ([first]: KeyChoice[]): Target => ({
    ...{ keyId: first?.id ?? "", model: "", version: product.version },
  });
  const newJudge = (): Judge => ({
    model: newTarget(keys.model),
    embedding: canCompare ? newTarget(keys.embedding) : null,
  });
  const own = errors["judge"];
  return (
    <fieldset className="plain stack">
      <legend className="m">Judge</legend>
      <CheckRow isChecked={judge !== null} onChange={(isOn) => onChange(isOn ? newJudge() : null)}>
        A model judges the rubrics of the tests, in one call for each output and rubric
      </CheckRow>
      {judge ? (
        <TargetFields
          product={{ ...product, compatibility: PROVIDERS, models: {} }}
          keys={keys.model}
          target={judge.model}
          errors={errorsOf(errors, "judge")}
          onChange={(change) => onChange({ ...judge, model: { ...judge.model, ...change } })}
        />
      ) : (
        <p className="sm soft">Without a judge, rubrics have no verdict.</p>
      )}
      {own && <p className="ferr">{own}</p>}
      {judge && canCompare && (
        <EmbeddingFields
          target={judge.embedding}
          keys={keys.embedding}
          errors={errors}
          onToggle={(isOn) => onChange({ ...judge, embedding: isOn ? newTarget(keys.embedding) : null })}
          onChange={(embedding) => onChange({ ...judge, embedding })}
        />
      )}
    </fieldset>
  );
}

/** Under the names that the fields of a run have. */
const errorsOf = (errors: Record<string, string>, part: string): Record<string, string> => ({
  ...(errors[`${part}.apiKeyId`] && { apiKeyId: errors[`${part}.apiKeyId`] }),
  ...(errors[`${part}.model`] && { "options.model": errors[`${part}.model`] }),
});

interface EmbeddingFieldsProps {
  target: Target | null;
  keys: KeyChoice[];
  errors: Record<string, string>;
  onToggle: (isOn: boolean) => void;
  onChange: (target: Target) => void;
}

function EmbeddingFields({ target, keys, errors, onToggle, onChange }: EmbeddingFieldsProps) {
  const product = useTestedProduct();
  const own = errors["judge.embedding"];
  return (
    <fieldset className="plain stack">
      <legend className="m">Embeddings</legend>
      <CheckRow isChecked={target !== null} onChange={onToggle}>
        An embedding model compares texts, for “is close in meaning to” and “answers the input”
      </CheckRow>
      {target ? (
        <TargetFields
          product={{ ...product, compatibility: EMBEDDING_PROVIDERS, models: {} }}
          keys={keys}
          target={target}
          mode="embedding"
          errors={errorsOf(errors, "judge.embedding")}
          onChange={(change) => onChange({ ...target, ...change })}
        />
      ) : (
        <p className="sm soft">Without an embedding model, these have no verdict.</p>
      )}
      {own && <p className="ferr">{own}</p>}
    </fieldset>
  );
}
