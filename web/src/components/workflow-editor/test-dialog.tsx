import "../running/run-form.css";
import type { TestWorkflow } from "@stoa/sdk";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { curlOf } from "../../lib/curl.ts";
import { formatMoment } from "../../lib/format.ts";
import { literalOf } from "../../lib/object-literal.ts";
import { providerName, runsEveryProduct } from "../../lib/providers.ts";
import { useAction } from "../../lib/use-action.ts";
import { type InputSchema, parseDefinition, providersOf } from "../../lib/workflow-definition.ts";
import { ancestorsOf, isObject } from "../../lib/workflow-document.ts";
import { workflowRunsQuery } from "../../queries/workflow-editor.ts";
import { Dialog, DialogButtons } from "../dialog.tsx";
import { ErrorSummary, fieldErrors } from "../field.tsx";
import { defaultKey, type KeyChoice, useKeyChoices } from "../running/run-target.ts";
import { fieldsOf, readInput, SchemaFields, type SchemaValues, toTyped } from "../running/schema-fields.tsx";
import { KeyField } from "../running/target-fields.tsx";
import { ShowAsCode } from "../show-as-code.tsx";
import { useEditor } from "./editor-context.ts";
import { TestCost } from "./test-cost.tsx";

interface TestDialogProps {
  /** Only this step, with the outputs of the ones before as they are shown here. */
  stepId?: string;
  onClose: () => void;
}

/** Runs what the editor shows, saved or not: as a whole, from the input of an earlier run, or one step. */
export default function TestDialog({ stepId, onClose }: TestDialogProps) {
  const { product, document, definition, problems, run, showRun } = useEditor();
  const client = useQueryClient();
  const schema = isObject(definition["input"]) ? (definition["input"] as InputSchema) : {};
  const fields = fieldsOf(schema);
  const [typed, setTyped] = useState<SchemaValues>(() => toTyped(fields, run?.execution.variables ?? {}));
  const pins = usePins(stepId);
  const keys = useTestKeys(stepId, pins.outputs);
  const { input, errors: invalid } = readInput(fields, typed);
  const [isChecked, check] = useState(false);
  const request: TestWorkflow = {
    ...{ content: document.text, input, apiKeys: keys.chosen },
    ...(stepId !== undefined && { stepId, outputs: pins.outputs }),
  };
  const { start, isPending, error } = useAction({
    run: (body: TestWorkflow, idempotencyKey) => stoa.ai.workflows.test(product.id, body, { idempotencyKey }),
    onSuccess: ({ executionId }) => {
      showRun(executionId);
      void client.invalidateQueries({ queryKey: ["executions"] });
      onClose();
    },
  });
  const refused = fieldErrors(error);
  const errors = { ...inputErrors(refused), ...(isChecked && invalid) };
  const isReady = Object.keys(invalid).length === 0 && pins.error === null;
  return (
    <Dialog title={stepId === undefined ? "Test run" : `Run ${stepId}`} onClose={onClose}>
      <form
        className="stack form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          check(true);
          if (isReady) start(request);
        }}
      >
        {problems.length > 0 && (
          <p className="sm warning">A workflow with problems does not run: see the list below the canvas.</p>
        )}
        <ErrorSummary error={error} title="The run did not start" />
        <EarlierRuns onChoose={(variables) => setTyped(toTyped(fields, variables))} />
        <SchemaFields
          fields={fields}
          typed={typed}
          errors={errors}
          onChange={(name, text) => setTyped((old) => ({ ...old, [name]: text }))}
        />
        {fields.length === 0 && <p className="soft sm">This workflow asks for nothing.</p>}
        {stepId !== undefined && <PinnedOutputs {...pins} />}
        {keys.fields}
        <TestCost steps={keys.steps} sandboxed={keys.sandboxed} />
        <p className="sm soft">
          {stepId === undefined
            ? "Each step runs once, at your providers' prices. Nothing is saved or published."
            : "Only this step runs, at your provider's price. Steps without a pinned output run before it."}
        </p>
        <DialogButtons>
          <ShowAsCode
            curl={curlOf("POST", `/ai/workflows/${product.id}/test`, request)}
            sdk={`await stoa.ai.workflows.test("${product.id}", ${literalOf(request)});`}
          />
          <button type="button" className="btn" onClick={onClose}>
            Close
          </button>
          <button type="submit" className="btn primary" disabled={isPending}>
            Run
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}

const inputErrors = (errors: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(errors).map(([field, text]) => [
      field.replace(/^input\.?/, "").split(/[.[]/)[0] ?? "",
      text,
    ]),
  );

/** The input of a run that took place, on what the editor shows now. */
function EarlierRuns({ onChoose }: { onChoose: (variables: Record<string, unknown>) => void }) {
  const { product, run } = useEditor();
  const client = useQueryClient();
  const { data: runs = [] } = useQuery(workflowRunsQuery(product.id));
  const [chosen, setChosen] = useState(run?.execution.id ?? "");
  if (runs.length === 0) return null;
  const choose = async (id: string) => {
    setChosen(id);
    const { variables } = await client.ensureQueryData({
      queryKey: ["execution", id],
      queryFn: async () => await stoa.ai.executions.get(id),
    });
    onChoose(variables ?? {});
  };
  return (
    <label className="field">
      <span className="m">Input of an earlier run</span>
      <select className="input" value={chosen} onChange={({ target }) => void choose(target.value)}>
        {runs.every(({ id }) => id !== chosen) && <option value={chosen}>Choose a run</option>}
        {runs.map(({ id, createdAt, status, productVersion }) => (
          <option key={id} value={id}>
            {formatMoment(createdAt)}, {status}, {productVersion}
          </option>
        ))}
      </select>
    </label>
  );
}

type Pins = ReturnType<typeof usePins>;

/** The outputs of the steps before, as JSON; an empty one is not pinned. */
function usePins(stepId: string | undefined) {
  const { steps, run } = useEditor();
  const before = stepId === undefined ? [] : ancestorsOf(steps, stepId);
  const [texts, setTexts] = useState<Record<string, string>>(() =>
    Object.fromEntries(
      before.map((id) => [
        id,
        run && Object.hasOwn(run.outputs, id) ? JSON.stringify(run.outputs[id], null, 2) : "",
      ]),
    ),
  );
  const outputs: Record<string, unknown> = {};
  let error: string | null = null;
  for (const [id, text] of Object.entries(texts)) {
    if (text.trim() === "") continue;
    try {
      outputs[id] = JSON.parse(text);
    } catch {
      error ??= id;
    }
  }
  const change = (id: string, text: string) => setTexts((old) => ({ ...old, [id]: text }));
  return { texts, outputs, error, change };
}

function PinnedOutputs({ texts, error, change }: Pins) {
  const entries = Object.entries(texts);
  if (entries.length === 0) return null;
  return (
    <details open>
      <summary className="m">Pinned outputs of the steps before</summary>
      <div className="stack">
        {entries.map(([id, text]) => (
          <label className="field" key={id}>
            <span className="m mono">{id}</span>
            <textarea
              className="input area json mono"
              rows={Math.min(6, text.split("\n").length)}
              spellCheck={false}
              placeholder="Not pinned: the step runs"
              value={text}
              onChange={({ target }) => change(id, target.value)}
            />
            {error === id && (
              <span className="ferr">Enter JSON, such as {'"text"'}, or nothing to run the step.</span>
            )}
          </label>
        ))}
      </div>
    </details>
  );
}

const isSandboxKey = (keys: KeyChoice[], id: string): boolean =>
  keys.find((key) => key.id === id)?.provider === "sandbox";

/** A key for each provider that is called. */
function useTestKeys(stepId: string | undefined, pinned: Record<string, unknown>) {
  const { document, steps } = useEditor();
  const definition = parseDefinition(document.text);
  const needed = new Set(
    stepId === undefined ? steps.map(({ id }) => id) : [stepId, ...ancestorsOf(steps, stepId)],
  );
  const running = definition && {
    ...definition,
    steps: definition.steps.filter(({ id }) => needed.has(id) && !Object.hasOwn(pinned, id)),
  };
  const providers = running ? providersOf(running) : [];
  const all = useKeyChoices(providers);
  const [picked, pick] = useState<Record<string, string>>({});
  const fitting = (provider: string) =>
    all.filter((key) => key.provider === provider || runsEveryProduct(key.provider));
  const chosen = Object.fromEntries(
    providers.flatMap((provider) => {
      const id = picked[provider] ?? defaultKey(fitting(provider))?.id;
      return id === undefined ? [] : [[provider, id]];
    }),
  );
  const fields = providers
    .filter((provider) => provider !== "sandbox")
    .map((provider) => (
      <KeyField
        key={provider}
        label={`Key for ${providerName(provider)}`}
        providers={[provider]}
        keys={fitting(provider)}
        value={chosen[provider] ?? ""}
        onChange={(id) => pick((old) => ({ ...old, [provider]: id }))}
      />
    ));
  const sandboxed = new Set(
    Object.entries(chosen).flatMap(([provider, id]) => (isSandboxKey(all, id) ? [provider] : [])),
  );
  return { chosen, fields, sandboxed, steps: running?.steps ?? [] };
}
