import "../running/run-form.css";
import type { TestWorkflow } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { curlOf } from "../../lib/curl.ts";
import { formatCount } from "../../lib/format.ts";
import { literalOf } from "../../lib/object-literal.ts";
import { providerName, runsEveryProduct } from "../../lib/providers.ts";
import { useAction } from "../../lib/use-action.ts";
import { type InputSchema, parseDefinition, providersOf } from "../../lib/workflow-definition.ts";
import { ancestorsOf, type EditedStep, isObject } from "../../lib/workflow-document.ts";
import { Dialog, DialogButtons } from "../dialog.tsx";
import { ErrorSummary, fieldErrors } from "../field.tsx";
import { defaultKey, type KeyChoice, useKeyChoices } from "../running/run-target.ts";
import {
  fieldsOf,
  inputErrors,
  readInput,
  SchemaFields,
  type SchemaValues,
  toTyped,
} from "../running/schema-fields.tsx";
import { KeyField } from "../running/target-fields.tsx";
import { ShowAsCode } from "../show-as-code.tsx";
import { EarlierRuns } from "./earlier-runs.tsx";
import { useEditor } from "./editor-context.ts";
import { PinnedOutputs, usePins } from "./pinned-outputs.tsx";
import { TestCost } from "./test-cost.tsx";

interface TestDialogProps {
  /** Only this step, with the outputs of the ones before as they are shown here. */
  stepId?: string;
  onClose: () => void;
}

/** Runs what the editor shows, saved or not: as a whole, with input and outputs of an earlier run, or one step. */
export default function TestDialog({ stepId, onClose }: TestDialogProps) {
  const { product, document, definition, steps, problems, run, showRun } = useEditor();
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
    ...(stepId !== undefined && { stepId }),
    ...((stepId !== undefined || pins.entries.length > 0) && { outputs: pins.outputs }),
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
        <EarlierRuns
          stepId={stepId}
          onChoose={(replayed) => {
            if (replayed) setTyped(toTyped(fields, replayed.input));
            pins.replay(replayed);
          }}
        />
        <SchemaFields
          fields={fields}
          typed={typed}
          errors={errors}
          onChange={(name, text) => setTyped((old) => ({ ...old, [name]: text }))}
        />
        {fields.length === 0 && <p className="soft sm">This workflow asks for nothing.</p>}
        <PinnedOutputs pins={pins} />
        {keys.fields}
        <TestCost steps={keys.steps} sandboxed={keys.sandboxed} />
        <p className="sm soft">
          {stepId === undefined
            ? `${describeRuns(steps, pins.outputs)} Nothing is saved or published.`
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

function describeRuns(steps: EditedStep[], pinned: Record<string, unknown>): string {
  const running = steps.filter(({ id }) => !Object.hasOwn(pinned, id));
  if (running.length === steps.length) return "Each step runs once, at your providers' prices.";
  if (running.length === 0) return "All steps are pinned: only the result is evaluated.";
  const names = running.map(({ id }) => id).join(", ");
  return `${formatCount(running.length)} of ${formatCount(steps.length)} steps run, at your providers' prices: ${names}.`;
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
