import "../running/run-form.css";
import type { TestWorkflow } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { curlOf } from "../../lib/curl.ts";
import { formatCount } from "../../lib/format.ts";
import { literalOf } from "../../lib/object-literal.ts";
import { useAction } from "../../lib/use-action.ts";
import { type InputSchema, parseDefinition, type WorkflowDefinition } from "../../lib/workflow-definition.ts";
import { ancestorsOf, type EditedStep, isObject } from "../../lib/workflow-document.ts";
import { Dialog, DialogButtons } from "../dialog.tsx";
import { ErrorSummary, fieldErrors } from "../field.tsx";
import {
  fieldsOf,
  inputErrors,
  readInput,
  SchemaFields,
  type SchemaValues,
  toTyped,
} from "../running/schema-fields.tsx";
import { useWorkflowKeys, WorkflowKeyFields } from "../running/workflow-keys.tsx";
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
  const { keys, onPick, sandboxed, steps: calledSteps } = useTestKeys(stepId, pins.outputs);
  const { input, errors: invalid } = readInput(fields, typed);
  const [isChecked, check] = useState(false);
  const request: TestWorkflow = {
    ...{ content: document.text, input, apiKeys: keys.apiKeys },
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
        <WorkflowKeyFields keys={keys} errors={refused} onPick={onPick} />
        <TestCost steps={calledSteps} sandboxed={sandboxed} />
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

/** A key for each provider that is called. */
function useTestKeys(stepId: string | undefined, pinned: Record<string, unknown>) {
  const { document, steps } = useEditor();
  const definition = parseDefinition(document.text);
  const needed = new Set(
    stepId === undefined ? steps.map(({ id }) => id) : [stepId, ...ancestorsOf(steps, stepId)],
  );
  const running: WorkflowDefinition = {
    input: definition?.input ?? {},
    steps: definition?.steps.filter(({ id }) => needed.has(id) && !Object.hasOwn(pinned, id)) ?? [],
  };
  const [picked, pick] = useState<Record<string, string>>({});
  const keys = useWorkflowKeys(running, picked);
  const onPick = (provider: string, keyId: string) => pick((old) => ({ ...old, [provider]: keyId }));
  const sandboxed = new Set(
    Object.entries(keys.chosen).flatMap(([provider, key]) => (key?.provider === "sandbox" ? provider : [])),
  );
  return { keys, onPick, sandboxed, steps: running.steps };
}
