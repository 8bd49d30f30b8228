import type { EvaluateProduct, Evaluation, TestSet } from "@stoa/sdk";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { PlayIcon, PlusIcon } from "../../components/icons.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { defaultKey, type Target, useKeyChoices } from "../../components/running/run-target.ts";
import { TargetFields } from "../../components/running/target-fields.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { StatusTag, type Tone } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatCost, formatCount } from "../../lib/format.ts";
import { showError } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { evaluationsQuery } from "../../queries/evaluations.ts";
import { useEditor } from "./editor-context.tsx";
import { EvaluationResults } from "./evaluation-results.tsx";
import { hasRubrics, JudgeFields, useJudgeKeys } from "./judge-fields.tsx";
import { ReEvaluationLimits } from "./re-evaluation-limits.tsx";

const POLL_MS = 2_000;
const MAX_MODELS = 5;
const DEFAULT_REPEATS = 3;

/** Starts evaluations of the stored version, and shows the newest ones. */
export function Evaluations({ testSet }: { testSet: TestSet }) {
  const { product } = useEditor();
  const { data: evaluations, error } = useQuery({
    ...evaluationsQuery(product.id),
    refetchInterval: ({ state }) =>
      state.data?.some(({ status }) => status === "running") ? POLL_MS : false,
  });
  const [shown, setShown] = useState<string | null>(null);
  const current = shown ?? evaluations?.[0]?.id ?? null;
  return (
    <section className="beam thin stack">
      <h2 className="h3">Evaluations</h2>
      <p className="soft">
        An evaluation runs every test on every model, several times, with your own keys, and once more on the
        bare model without the product. The newest complete one of the version on sale is on the product’s
        page.
      </p>
      {testSet.cases.length > 0 && <NewEvaluation testSet={testSet} onStart={setShown} />}
      {error && <ErrorStrip error={error} />}
      {evaluations && evaluations.length > 0 && (
        <EvaluationTable evaluations={evaluations} current={current} onShow={setShown} />
      )}
      {current !== null && <EvaluationResults key={current} evaluationId={current} />}
      {evaluations && evaluations.length > 0 && <ReEvaluationLimits />}
    </section>
  );
}

interface NewEvaluationProps {
  testSet: TestSet;
  onStart: (evaluationId: string) => void;
}

function NewEvaluation({ testSet, onStart }: NewEvaluationProps) {
  const { product } = useEditor();
  const client = useQueryClient();
  const keys = useKeyChoices(product.compatibility);
  const emptyTarget = (): Target & { id: string } => ({
    id: crypto.randomUUID(),
    keyId: defaultKey(keys)?.id ?? "",
    model: "",
    version: product.version,
  });
  const [targets, setTargets] = useState(() => [emptyTarget()]);
  const judgeKeys = useJudgeKeys();
  const [judge, setJudge] = useState<Target | null>(null);
  const canJudge = hasRubrics(testSet);
  const [repeats, setRepeats] = useState(String(DEFAULT_REPEATS));
  const [maxCost, setMaxCost] = useState("1");
  const request: EvaluateProduct = {
    models: targets.map(({ keyId, model }) => ({ apiKeyId: keyId, ...(model !== "" && { model }) })),
    repeats: Number(repeats),
    ...(canJudge && judge && { judge: { apiKeyId: judge.keyId, model: judge.model } }),
    maxCost: Number(maxCost),
  };
  const isComplete =
    [...targets, ...(canJudge && judge ? [judge] : [])].every(
      ({ keyId, model }) => keyId !== "" && model !== "",
    ) &&
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
            <div>
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
        <div>
          <button
            type="button"
            className="btn quiet s"
            onClick={() => setTargets((old) => [...old, emptyTarget()])}
          >
            <PlusIcon /> Add a model
          </button>
        </div>
      )}
      {canJudge && <JudgeFields target={judge} keys={judgeKeys} errors={errors} onChange={setJudge} />}
      <div className="editor-pair">
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
        <Field
          label="At most, in USD"
          hint="No call starts that is expected to exceed it."
          error={errors["maxCost"]}
        >
          {(control) => (
            <input
              {...control}
              className="input"
              inputMode="decimal"
              value={maxCost}
              onChange={({ target }) => setMaxCost(target.value)}
            />
          )}
        </Field>
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

/** Under the names that the fields of a run have. */
function errorsOfModel(errors: Record<string, string>, at: number): Record<string, string> {
  const key = errors[`models[${at}].apiKeyId`];
  const model = errors[`models[${at}].model`];
  return { ...(key && { apiKeyId: key }), ...(model && { "options.model": model }) };
}

const STARTERS: Record<string, string> = {
  model_deprecated: "Repeated: a model is deprecated",
  price_changed: "Repeated: a price changed",
  schedule: "Repeated by schedule",
};

const STATUSES: Record<string, readonly [Tone, string]> = {
  running: ["accent", "Running"],
  completed: ["good", "Complete"],
  failed: ["bad", "Stopped"],
  canceled: ["neutral", "Canceled"],
};

interface EvaluationTableProps {
  evaluations: Evaluation[];
  current: string | null;
  onShow: (evaluationId: string) => void;
}

const EvaluationTable = ({ evaluations, current, onShow }: EvaluationTableProps) => (
  <div className="editor-scroll">
    <table>
      <thead>
        <tr>
          <th>Started</th>
          <th>Version</th>
          <th>Status</th>
          <th className="r">Passed</th>
          <th className="r">Cost</th>
          <th>
            <span className="hidden">Change</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {evaluations.map((evaluation) => (
          <EvaluationRow
            key={evaluation.id}
            evaluation={evaluation}
            isShown={evaluation.id === current}
            onShow={() => onShow(evaluation.id)}
          />
        ))}
      </tbody>
    </table>
  </div>
);

interface EvaluationRowProps {
  evaluation: Evaluation;
  isShown: boolean;
  onShow: () => void;
}

function EvaluationRow({ evaluation, isShown, onShow }: EvaluationRowProps) {
  const client = useQueryClient();
  const cancel = useAction({
    run: async () => await stoa.evaluations.cancel(evaluation.id),
    onSuccess: () => client.invalidateQueries({ queryKey: ["evaluations", evaluation.productId] }),
    onError: (error) => showError("The evaluation was not canceled", error),
  });
  const products = evaluation.columns.filter(({ kind }) => kind === "product");
  const sum = (field: "passed" | "n", columns = products) =>
    columns.reduce((total, column) => total + column[field], 0);
  const judged = evaluation.columns.filter(
    ({ judgedColumn }) => judgedColumn !== null && evaluation.columns[judgedColumn]?.kind === "product",
  );
  const [tone, label] = STATUSES[evaluation.status] ?? ["neutral", evaluation.status];
  return (
    <tr aria-current={isShown || undefined}>
      <td>
        <button type="button" className="link" onClick={onShow}>
          <Time iso={evaluation.createdAt} />
        </button>
        {STARTERS[evaluation.startedBy] && <p className="sm soft">{STARTERS[evaluation.startedBy]}</p>}
      </td>
      <td className="num">{evaluation.version}</td>
      <td>
        <StatusTag tone={tone}>{label}</StatusTag>
        {evaluation.error && <p className="sm soft">{evaluation.error.message}</p>}
      </td>
      <td className="r num">
        {formatCount(sum("passed"))} of {formatCount(sum("n"))}
        {evaluation.judge && (
          <p className="xs soft">
            {evaluation.judge.model}: {formatCount(sum("passed", judged))} of {formatCount(sum("n", judged))}
          </p>
        )}
      </td>
      <td className="r num">{formatCost(evaluation.cost)}</td>
      <td className="r">
        {evaluation.status === "running" && (
          <button type="button" className="btn s" disabled={cancel.isPending} onClick={() => cancel.start()}>
            Cancel
          </button>
        )}
      </td>
    </tr>
  );
}
