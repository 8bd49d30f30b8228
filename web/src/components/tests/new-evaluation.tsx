import type { EvaluateProduct, TestSet } from "@stoa/sdk";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { stoa } from "../../api.ts";
import { curlOf } from "../../lib/curl.ts";
import { formatCost, formatCount } from "../../lib/format.ts";
import { useAction } from "../../lib/use-action.ts";
import { parseDefinition, type WorkflowDefinition } from "../../lib/workflow-definition.ts";
import { Field, fieldErrors } from "../field.tsx";
import { FormError } from "../form-error.tsx";
import { PlayIcon, PlusIcon } from "../icons.tsx";
import { defaultKey, type Target, useKeyChoices } from "../running/run-target.ts";
import { TargetFields } from "../running/target-fields.tsx";
import { useWorkflowKeys, WorkflowKeyFields } from "../running/workflow-keys.tsx";
import { ShowAsCode } from "../show-as-code.tsx";
import {
  canBeJudged,
  isCompleteJudge,
  type Judge,
  JudgeFields,
  toJudgeRequest,
  useJudgeKeys,
} from "./judge-fields.tsx";
import { useTestedProduct } from "./tested-product.ts";
import { UsdField } from "./usd-field.tsx";

const MAX_MODELS = 5;
const DEFAULT_REPEATS = 3;

interface NewEvaluationProps {
  testSet: TestSet;
  onStart: (evaluationId: string) => void;
}

/** Of a prompt with the models that its seller chooses, of a workflow with the keys of its steps. */
export function NewEvaluation(props: NewEvaluationProps) {
  const product = useTestedProduct();
  const definition = product.type === "WORKFLOW" ? parseDefinition(product.content) : null;
  return definition ? (
    <WorkflowEvaluation {...props} definition={definition} />
  ) : (
    <PromptEvaluation {...props} />
  );
}

function PromptEvaluation(props: NewEvaluationProps) {
  const product = useTestedProduct();
  const keys = useKeyChoices(product.compatibility);
  const emptyTarget = (): Target & { id: string } => ({
    id: crypto.randomUUID(),
    keyId: defaultKey(keys)?.id ?? "",
    model: "",
    version: product.version,
  });
  const [targets, setTargets] = useState(() => [emptyTarget()]);
  return (
    <EvaluationForm
      {...props}
      tested={{
        models: targets.map(({ keyId, model }) => ({ apiKeyId: keyId, ...(model !== "" && { model }) })),
      }}
      isComplete={targets.every(({ keyId, model }) => keyId !== "" && model !== "")}
    >
      {(errors) => (
        <>
          {targets.map((target, at) => (
            <fieldset className="plain stack" key={target.id}>
              <legend className="m">Model {at + 1}</legend>
              <TargetFields
                product={product}
                keys={keys}
                target={target}
                errors={errorsOfModel(errors, at)}
                onChange={(change) =>
                  setTargets((old) => old.map((one) => (one.id === target.id ? { ...one, ...change } : one)))
                }
              />
              {targets.length > 1 && (
                <div className="flush">
                  <button
                    type="button"
                    className="btn quiet s"
                    onClick={() => setTargets((old) => old.filter(({ id }) => id !== target.id))}
                  >
                    Remove model {at + 1}
                  </button>
                </div>
              )}
            </fieldset>
          ))}
          {targets.length < MAX_MODELS && (
            <div className="flush">
              <button
                type="button"
                className="btn quiet s"
                onClick={() => setTargets((old) => [...old, emptyTarget()])}
              >
                <PlusIcon /> Add a model
              </button>
            </div>
          )}
        </>
      )}
    </EvaluationForm>
  );
}

/** Under the names that the fields of a run have. */
function errorsOfModel(errors: Record<string, string>, at: number): Record<string, string> {
  const key = errors[`models[${at}].apiKeyId`];
  const model = errors[`models[${at}].model`];
  return { ...(key && { apiKeyId: key }), ...(model && { "options.model": model }) };
}

function WorkflowEvaluation({
  definition,
  ...props
}: NewEvaluationProps & { definition: WorkflowDefinition }) {
  const [picked, pick] = useState<Record<string, string>>({});
  const keys = useWorkflowKeys(definition, picked);
  return (
    <EvaluationForm {...props} tested={{ apiKeys: keys.apiKeys }} isComplete={keys.isComplete}>
      {(errors) => (
        <WorkflowKeyFields
          keys={keys}
          errors={errors}
          onPick={(provider, keyId) => pick((old) => ({ ...old, [provider]: keyId }))}
        />
      )}
    </EvaluationForm>
  );
}

interface EvaluationFormProps extends NewEvaluationProps {
  tested: Pick<EvaluateProduct, "models" | "apiKeys">;
  /** Whether `tested` is. */
  isComplete: boolean;
  /** The fields of `tested`. */
  children: (errors: Record<string, string>) => ReactNode;
}

function EvaluationForm({
  testSet,
  onStart,
  tested,
  isComplete: isTestedComplete,
  children,
}: EvaluationFormProps) {
  const product = useTestedProduct();
  const client = useQueryClient();
  const judgeKeys = useJudgeKeys();
  const [chosenJudge, setJudge] = useState<Judge | null>(null);
  const canJudge = canBeJudged(testSet);
  const judge = canJudge ? chosenJudge : null;
  const [repeats, setRepeats] = useState(String(DEFAULT_REPEATS));
  const [maxCost, setMaxCost] = useState("1");
  const request: EvaluateProduct = {
    ...tested,
    repeats: Number(repeats),
    ...(judge && { judge: toJudgeRequest(judge) }),
    maxCost: Number(maxCost),
  };
  const isComplete =
    isTestedComplete &&
    (!judge || isCompleteJudge(judge)) &&
    Number.isInteger(request.repeats) &&
    Number(maxCost) > 0;
  const estimate = useQuery({
    queryKey: ["evaluation-estimate", product.id, testSet.hash, request],
    queryFn: async ({ signal }) => await stoa.evaluations.estimate(product.id, request, { signal }),
    enabled: isComplete,
    retry: false,
  });
  const start = useAction({
    run: async (body: EvaluateProduct, idempotencyKey) =>
      await stoa.evaluations.create(product.id, body, { idempotencyKey }),
    onSuccess: async ({ id }) => {
      onStart(id);
      await client.invalidateQueries({ queryKey: ["evaluations", product.id] });
    },
  });
  const errors = { ...fieldErrors(estimate.error), ...fieldErrors(start.error) };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isComplete) start.start(request);
  };
  return (
    <form className="stack narrow-form" onSubmit={submit} noValidate data-own-undo>
      <FormError error={start.error ?? estimate.error} title="The evaluation cannot start" />
      {children(errors)}
      {canJudge && (
        <JudgeFields testSet={testSet} judge={judge} keys={judgeKeys} errors={errors} onChange={setJudge} />
      )}
      <div className="test-pair">
        <Field
          label="Runs of each test"
          hint="Single runs are noise: three or more show how steady the result is."
          error={errors["repeats"]}
        >
          {(control) => (
            <input
              {...control}
              className="input"
              type="number"
              min={1}
              max={10}
              value={repeats}
              onChange={({ target }) => setRepeats(target.value)}
            />
          )}
        </Field>
        <UsdField
          label="At most, in USD"
          hint="No call starts that is expected to exceed it."
          error={errors["maxCost"]}
          value={maxCost}
          onChange={setMaxCost}
        />
      </div>
      <div className="row wrap">
        <button type="submit" className="btn primary" disabled={!isComplete || start.isPending}>
          <PlayIcon /> Evaluate
        </button>
        {estimate.data && (
          <span className="sm soft num">
            {formatCount(estimate.data.runs)} runs,{" "}
            {estimate.data.cost === null
              ? "cost not known"
              : `about ${formatCost(estimate.data.cost)} of your keys`}
          </span>
        )}
      </div>
      <div className="flush">
        <ShowAsCode
          curl={curlOf("POST", `/products/${product.id}/evaluations`, request)}
          sdk={`const evaluation = await stoa.evaluations.create("${product.id}", ${JSON.stringify(request)});`}
        />
      </div>
    </form>
  );
}
