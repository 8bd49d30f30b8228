import "./workflow-run.css";
import type { EstimateExecution, ExecuteWorkflow, ExecutionDetail, ProductDetail } from "@stoa/sdk";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { lazy, useEffect, useState } from "react";
import { stoa } from "../../api.ts";
import { ErrorSummary, Field, fieldErrors } from "../../components/field.tsx";
import { PlayIcon } from "../../components/icons.tsx";
import { Part } from "../../components/part.tsx";
import { RunBar } from "../../components/running/run-bar.tsx";
import { StartErrorStrip } from "../../components/running/run-failure.tsx";
import { RunHistory } from "../../components/running/run-history.tsx";
import type { KeyChoice } from "../../components/running/run-target.ts";
import {
  fieldsOf,
  inputErrors,
  readInput,
  SchemaFields,
  type SchemaValues,
  toTyped,
} from "../../components/running/schema-fields.tsx";
import { showSteps } from "../../components/running/step-state.ts";
import { describeRange } from "../../components/running/tally.tsx";
import { VersionField } from "../../components/running/target-fields.tsx";
import { useEstimatedCalls } from "../../components/running/workflow-costs.ts";
import { useWorkflowKeys, WorkflowKeyFields } from "../../components/running/workflow-keys.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { curlOf } from "../../lib/curl.ts";
import { describeError } from "../../lib/errors.ts";
import { formatCost, formatCount } from "../../lib/format.ts";
import { literalOf } from "../../lib/object-literal.ts";
import type { CostRange } from "../../lib/run-costs.ts";
import { readDraft, writeDraft } from "../../lib/run-drafts.ts";
import { useStartOnce } from "../../lib/start-once.ts";
import { useDebounced } from "../../lib/use-debounced.ts";
import { useRunKeys } from "../../lib/use-run-keys.ts";
import { parseDefinition, type WorkflowDefinition } from "../../lib/workflow-definition.ts";
import { executionQuery, versionQuery } from "../../queries/running.ts";
import WorkflowRun from "./workflow-run.tsx";

const Graph = lazy(() => import("../../components/running/workflow-graph.tsx"));

const route = getRouteApi("/run/$productId");

interface WorkflowDraft {
  typed: SchemaValues;
  version: string;
  maxCost: string;
  /** Key ids by provider. */
  keys: Record<string, string>;
  /** The newest version at that time: a draft does not hold a product back at an older one. */
  newest: string;
}

/** The page of a workflow: its form, or one of its runs. */
export default function WorkflowRunner({ product }: { product: ProductDetail }) {
  const { run, from, tab, version } = route.useSearch();
  const client = useQueryClient();
  const id = from ?? run;
  const earlier = id === undefined ? undefined : client.getQueryData(executionQuery(id).queryKey);
  const [draft, setDraft] = useState(() =>
    firstDraft(product, from === undefined ? undefined : earlier, version),
  );
  // "Run again" leads here from a run of the same page.
  const [filled, setFilled] = useState(from);
  if (from !== undefined && from !== filled && earlier) {
    setFilled(from);
    setDraft(firstDraft(product, earlier, version));
  }
  useEffect(() => writeDraft(product.id, draft), [product.id, draft]);
  const definition = useDefinition(product, draft.version);
  const request = definition ? toRequest(product, definition, draft) : {};
  const shownVersion = run !== undefined && earlier ? earlier.productVersion : draft.version;
  const code = {
    curl: curlOf("POST", `/ai/workflows/${product.id}/execute`, request),
    sdk: `const run = stoa.ai.workflows.stream("${product.id}", ${literalOf(request)});\nfor await (const event of run) console.log(event.type);`,
  };
  return (
    <main id="content" className="run-page">
      <RunBar product={product} version={shownVersion} code={code} />
      {tab === "history" ? (
        <RunHistory product={product} />
      ) : run !== undefined && from === undefined ? (
        <WorkflowRun key={run} executionId={run} product={product} />
      ) : definition ? (
        <WorkflowForm product={product} definition={definition} draft={draft} setDraft={setDraft} />
      ) : (
        <SkeletonRows />
      )}
    </main>
  );
}

function useDefinition(product: ProductDetail, version: string): WorkflowDefinition | null {
  const isNewest = version === product.version;
  const { data } = useQuery({ ...versionQuery(product.id, version), enabled: !isNewest });
  return parseDefinition(isNewest ? product.content : data?.content);
}

function firstDraft(
  product: ProductDetail,
  earlier: ExecutionDetail | undefined,
  version: string | undefined,
): WorkflowDraft {
  const definition = parseDefinition(product.content);
  const kept = earlier ? null : readDraft<WorkflowDraft>(product.id);
  if (kept) {
    const isCurrent = kept.newest === product.version && version === undefined;
    return isCurrent ? kept : { ...kept, version: version ?? product.version, newest: product.version };
  }
  return {
    typed: definition ? toTyped(fieldsOf(definition.input), earlier?.variables ?? {}) : {},
    version: version ?? earlier?.productVersion ?? product.version,
    maxCost: "",
    keys: {},
    newest: product.version,
  };
}

function toRequest(
  product: ProductDetail,
  definition: WorkflowDefinition,
  draft: WorkflowDraft,
): ExecuteWorkflow {
  const { input } = readInput(fieldsOf(definition.input), draft.typed);
  const options = {
    ...(draft.version !== product.version && { version: draft.version }),
    ...(draft.maxCost !== "" && { maxCost: Number(draft.maxCost) }),
  };
  return { input, apiKeys: draft.keys, ...(Object.keys(options).length > 0 && { options }) };
}

interface WorkflowFormProps {
  product: ProductDetail;
  definition: WorkflowDefinition;
  draft: WorkflowDraft;
  setDraft: (change: (old: WorkflowDraft) => WorkflowDraft) => void;
}

function WorkflowForm({ product, definition, draft, setDraft }: WorkflowFormProps) {
  const navigate = route.useNavigate();
  const client = useQueryClient();
  const keys = useWorkflowKeys(definition, draft.keys);
  const request = toRequest(product, definition, { ...draft, keys: keys.apiKeys });
  const fields = fieldsOf(definition.input);
  const { errors: invalid } = readInput(fields, draft.typed);
  const isCostValid = draft.maxCost === "" || Number(draft.maxCost) > 0;
  const isComplete = Object.keys(invalid).length === 0 && isCostValid && keys.isComplete;
  const [isChecked, check] = useState(false);
  const { start, isPending, error, clearError } = useStartOnce((body: ExecuteWorkflow, options) =>
    stoa.ai.workflows.execute(product.id, body, options),
  );
  const estimate = useFormEstimate(product, request, keys.chosen, Object.keys(invalid).length === 0);
  const startRun = async () => {
    check(true);
    if (!isComplete) return;
    const started = await start(request);
    if (!started) return;
    void client.invalidateQueries({ queryKey: ["executions"] });
    await navigate({ search: { run: started.executionId } });
  };
  useRunKeys({ run: () => void startRun() });
  const serverErrors = fieldErrors(error);
  const errors = { ...inputErrors(serverErrors), ...(isChecked && invalid) };
  const change = (part: Partial<WorkflowDraft>) => setDraft((old) => ({ ...old, ...part }));
  return (
    <div className="workflow-start">
      <form
        className="workflow-form"
        onSubmit={(event) => event.preventDefault()}
        onChange={clearError}
        noValidate
      >
        {isChecked && !isComplete && (
          <p className="ferr" role="alert">
            {Object.keys(invalid).length > 0
              ? `${Object.keys(invalid).length === 1 ? "1 field needs" : `${Object.keys(invalid).length} fields need`} a change.`
              : "Choose a key for each provider, and check the limit."}
          </p>
        )}
        {error !== null &&
          (Object.keys(serverErrors).length > 0 ? (
            <ErrorSummary error={error} title="The run did not start" />
          ) : (
            <StartErrorStrip error={error} provider={null} />
          ))}
        <SchemaFields
          fields={fields}
          typed={draft.typed}
          errors={errors}
          onChange={(name, text) => setDraft((old) => ({ ...old, typed: { ...old.typed, [name]: text } }))}
        />
        {fields.length === 0 && <p className="soft">This workflow asks for nothing.</p>}
        <div className="key-row">
          <WorkflowKeyFields
            keys={keys}
            errors={serverErrors}
            onPick={(provider, keyId) =>
              setDraft((old) => ({ ...old, keys: { ...old.keys, [provider]: keyId } }))
            }
          />
        </div>
        <details className="run-limits" open={draft.maxCost !== "" || undefined}>
          <summary className="m">Version and limits</summary>
          <div className="stack">
            <VersionField
              product={product}
              value={draft.version}
              error={serverErrors["options.version"]}
              onChange={(version) => change({ version })}
            />
            <Field
              label="Highest cost in USD"
              hint="A step that would exceed it does not start"
              error={isCostValid ? serverErrors["options.maxCost"] : "Enter an amount above $0."}
            >
              {(control) => (
                <input
                  {...control}
                  className="input num"
                  inputMode="decimal"
                  autoComplete="off"
                  value={draft.maxCost}
                  onChange={(event) => change({ maxCost: event.target.value.trim() })}
                />
              )}
            </Field>
          </div>
        </details>
        <WorkflowEstimate definition={definition} {...estimate} />
        <div className="row wrap">
          <button
            type="button"
            className="btn primary run-button"
            disabled={isPending}
            onClick={() => void startRun()}
          >
            <PlayIcon /> {isPending ? "Starting" : `Run${amountOf(estimate.range)}`}
          </button>
          <span className="xs faint desk">
            <span className="kbd">Ctrl Enter</span> runs
          </span>
        </div>
      </form>
      <div className="workflow-preview">
        <Part fallback={<SkeletonRows count={3} />}>
          <Graph steps={showSteps(definition.steps, [])} isPreview />
        </Part>
        <RunHistory product={product} isShort />
      </div>
    </div>
  );
}

const amountOf = (range: CostRange | null): string =>
  range === null ? "" : range.high === 0 ? ", free" : `, about ${formatCost(range.high)}`;

const SETTLE_MS = 350;

/** What the run would cost with the chosen keys; a replaced provider has its own prices. */
function useFormEstimate(
  product: ProductDetail,
  { input = {}, options }: ExecuteWorkflow,
  chosen: Record<string, KeyChoice | undefined>,
  isValid: boolean,
) {
  const body: EstimateExecution = {
    productId: product.id,
    variables: input,
    ...(options?.version !== undefined && { options: { version: options.version } }),
  };
  const text = JSON.stringify(body);
  const settled = useDebounced(text, SETTLE_MS);
  const { data, error } = useEstimatedCalls(
    JSON.parse(settled) as EstimateExecution,
    isValid && settled === text,
  );
  const range = data?.reduce<CostRange | null>(
    (sum, { call, expected }) => {
      const key = chosen[call.provider ?? ""];
      if (call.provider === "sandbox" || key?.provider === "sandbox") return sum;
      if (key?.provider !== call.provider || call.cost.min === null || expected === null) return null;
      return sum && { low: sum.low + Math.min(call.cost.min, expected), high: sum.high + expected };
    },
    { low: 0, high: 0 },
  );
  const calls = data?.reduce((count, { call }) => count + Math.max(1, call.calls.min), 0) ?? 0;
  return { range: range ?? null, calls, error, isKnown: data !== undefined };
}

interface WorkflowEstimateProps {
  definition: WorkflowDefinition;
  range: CostRange | null;
  calls: number;
  error: unknown;
  isKnown: boolean;
}

function WorkflowEstimate({ definition, range, calls, error, isKnown }: WorkflowEstimateProps) {
  if (error) return <p className="est sm soft">No estimate: {describeError(error).text}</p>;
  if (!isKnown) return <p className="est sm soft">The estimate shows here when the form is complete.</p>;
  return (
    <div className="est">
      <div className="row between wrap">
        <span className="m">Estimate</span>
        <span className="num b">{range ? describeRange(range) : "Price unknown"}</span>
      </div>
      <p className="xs soft">
        {formatCount(definition.steps.length)} steps, at least {formatCount(calls)} calls of models.{" "}
        {range?.high === 0
          ? "Nothing is charged."
          : "With answers of 500 tokens each; what steps pass on, and each item of a map, add to it. Charged by the providers to your keys."}
      </p>
    </div>
  );
}
