import type { TestSet } from "@stoa/sdk";
import { PROVIDERS } from "../../lib/providers.ts";
import { type KeyChoice, type Target, useKeyChoices } from "../running/run-target.ts";
import { TargetFields } from "../running/target-fields.tsx";
import { useTestedProduct } from "./tested-product.ts";

/** Keys of all providers: a judge runs no product. */
export const useJudgeKeys = (): KeyChoice[] => useKeyChoices(PROVIDERS);

const JUDGED = /^(?:not-)?(?:llm-rubric|factuality)$/;

/** Whether a judge has something to decide. */
export const hasRubrics = ({ cases }: TestSet): boolean =>
  cases.some(({ assert }) =>
    assert?.some(({ type, assert: members }) =>
      [type, ...(members ?? []).map((one) => one.type)].some(isRubric),
    ),
  );

const isRubric = (type: string): boolean => JUDGED.test(type);

interface JudgeFieldsProps {
  /** null: nothing is judged. */
  target: Target | null;
  keys: KeyChoice[];
  errors: Record<string, string>;
  onChange: (target: Target | null) => void;
}

/** Whether a model judges the rubrics, and which. */
export function JudgeFields({ target, keys, errors, onChange }: JudgeFieldsProps) {
  const product = useTestedProduct();
  const own = errors["judge"];
  return (
    <fieldset className="plain stack">
      <legend className="m">Judge</legend>
      <label className="check-row">
        <input
          type="checkbox"
          className="check"
          checked={target !== null}
          onChange={({ target: { checked } }) =>
            onChange(checked ? { keyId: keys[0]?.id ?? "", model: "", version: product.version } : null)
          }
        />
        <span>A model judges the rubrics of the tests, in one call for each output and rubric</span>
      </label>
      {target ? (
        <TargetFields
          product={{ ...product, compatibility: PROVIDERS, models: {} }}
          keys={keys}
          target={target}
          errors={{
            ...(errors["judge.apiKeyId"] && { apiKeyId: errors["judge.apiKeyId"] }),
            ...(errors["judge.model"] && { "options.model": errors["judge.model"] }),
          }}
          onChange={(change) => onChange({ ...target, ...change })}
        />
      ) : (
        <p className="sm soft">Without a judge, rubrics have no verdict.</p>
      )}
      {own && <p className="ferr">{own}</p>}
    </fieldset>
  );
}
