import type { Execute, ProductDetail } from "@stoa/sdk";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { stoa } from "../../api.ts";
import { ErrorSummary, fieldErrors } from "../../components/field.tsx";
import { PlayIcon } from "../../components/icons.tsx";
import { useEstimate } from "../../components/running/prompt-form.ts";
import { StartErrorStrip } from "../../components/running/run-failure.tsx";
import { isActive, RunMeter, RunOutput, useStop } from "../../components/running/run-output.tsx";
import { defaultKey, type Target, useKeyChoices } from "../../components/running/run-target.ts";
import { describeRange } from "../../components/running/tally.tsx";
import { TargetFields } from "../../components/running/target-fields.tsx";
import {
  findValueErrors,
  sentValues,
  VariableFields,
  type VariableValues,
} from "../../components/running/variable-fields.tsx";
import { describeError } from "../../lib/errors.ts";
import { useEndOfRun, useFollowedRun } from "../../lib/follow-run.ts";
import { rangeOf } from "../../lib/run-costs.ts";
import { readDraft, writeDraft } from "../../lib/run-drafts.ts";
import { useStartOnce } from "../../lib/start-once.ts";
import { useRunKeys } from "../../lib/use-run-keys.ts";
import { executionQuery } from "../../queries/running.ts";
import { isSame, promptOf } from "./draft-fields.ts";
import type { DraftState } from "./draft-store.ts";
import { useEditor, useEditorSearch } from "./editor-context.tsx";
import { SampleButton } from "./sample-button.tsx";

const POLL_MS = 15_000;

/** A run of what is written now, with an own key or the sandbox. */
export function TestRun() {
  const { draft, product, store, state } = useEditor();
  const [{ run }, setSearch] = useEditorSearch();
  const client = useQueryClient();
  const form = useTestForm(product);
  const [isChecked, check] = useState(false);
  const valueErrors = findValueErrors(draft.variables, form.values);
  const { execution, followed, isRunning } = useShownRun(run);
  const request = toTestRequest(product, state, form);
  const isReady = draft.content.trim() !== "" && form.target.keyId !== "" && form.target.model !== "";
  const isComplete = isReady && Object.keys(valueErrors).length === 0;
  const estimate = useEstimate(request, isComplete);
  const range = estimate.data ? rangeOf(estimate.data) : null;
  const { start, isPending, error, clearError } = useStartOnce((body: Execute, options) =>
    stoa.ai.executeInBackground(body, options),
  );
  const { stop } = useStop(isRunning ? run : undefined);
  const startRun = async () => {
    check(true);
    if (!isComplete || isRunning || isPending) return;
    await store.saveNow();
    const accepted = await start(toTestRequest(product, store.getState(), form));
    if (!accepted) return;
    check(false);
    void client.invalidateQueries({ queryKey: ["executions"] });
    await setSearch({ run: accepted.executionId });
  };
  useRunKeys({ run: () => void startRun(), ...(isRunning && { stop: () => void stop() }) });
  const key = form.keys.find(({ id }) => id === form.target.keyId);
  const serverErrors = fieldErrors(error);
  return (
    <section className="editor-pane editor-run" aria-label="Test run" data-field="test-run">
      <div className="editor-head">
        <h2 className="h3">Test run</h2>
        <span className="grow" />
        <span className="xs soft num cut">
          {range ? describeRange(range) : estimate.error ? "" : isComplete ? "" : "Fill in the form"}
        </span>
        <button
          type="button"
          className="btn s"
          disabled={isPending || isRunning}
          onClick={() => void startRun()}
        >
          <PlayIcon /> Run <span className="kbd desk">Ctrl Enter</span>
        </button>
      </div>
      <div className="editor-run-form stack form" onChange={clearError}>
        {Object.keys(serverErrors).length > 0 && <ErrorSummary error={error} title="The run did not start" />}
        <VariableFields
          variables={draft.variables}
          values={form.values}
          errors={isChecked ? valueErrors : {}}
          onChange={form.setValue}
        />
        {draft.variables.length === 0 && <p className="soft">This prompt asks for nothing.</p>}
        <details className="editor-target" open={form.keys.length === 0 || undefined}>
          <summary className="sm soft">
            {key
              ? key.provider === "sandbox"
                ? "Sandbox, asks no model"
                : `${key.name}, ${form.target.model}`
              : "No key"}
          </summary>
          <div className="stack">
            <TargetFields
              product={product}
              keys={form.keys}
              target={form.target}
              onChange={form.setTarget}
              errors={serverErrors}
            />
          </div>
        </details>
        {estimate.error && <p className="sm soft">No estimate: {describeError(estimate.error).text}</p>}
        {Boolean(error) && Object.keys(serverErrors).length === 0 && (
          <StartErrorStrip error={error} provider={key?.provider ?? null} last4={key?.last4} />
        )}
      </div>
      {execution && (
        <div className="editor-result">
          <RunMeter execution={execution} followed={followed} range={range} />
          <RunOutput
            execution={execution}
            followed={followed}
            actions={execution.status === "completed" && <SampleButton execution={execution} />}
          />
        </div>
      )}
    </section>
  );
}

function useShownRun(run: string | undefined) {
  const { data } = useQuery({
    ...executionQuery(run ?? ""),
    enabled: run !== undefined,
    // Beside the events, in case the last one is missed.
    refetchInterval: ({ state }) => (state.data && isActive(state.data) ? POLL_MS : false),
  });
  const execution = run === undefined ? undefined : data;
  const isRunning = execution !== undefined && isActive(execution);
  const followed = useFollowedRun(run, isRunning);
  useEndOfRun(execution?.id, execution?.status);
  return { execution, followed, isRunning };
}

interface TestForm {
  values: VariableValues;
  target: Target;
}

function useTestForm(product: ProductDetail) {
  const { draft } = useEditor();
  const keys = useKeyChoices(draft.compatibility);
  const name = `editor:${product.id}`;
  const [form, setForm] = useState<TestForm>(() => {
    const kept = readDraft<TestForm>(name);
    const isKnown = keys.some(({ id }) => id === kept?.target.keyId);
    const target = { keyId: defaultKey(keys)?.id ?? "", model: "", version: product.version };
    return { values: kept?.values ?? {}, target: kept && isKnown ? kept.target : target };
  });
  useEffect(() => writeDraft(name, form), [name, form]);
  const [actions] = useState(() => ({
    setValue: (variable: string, value: string) =>
      setForm((old) => ({ ...old, values: { ...old.values, [variable]: value } })),
    setTarget: (change: Partial<Target>) =>
      setForm((old) => ({ ...old, target: { ...old.target, ...change } })),
  }));
  return { ...form, keys, ...actions };
}

/** What is not saved runs as a draft; a run of what is saved can become a sample. */
function toTestRequest(
  product: ProductDetail,
  { draft, base }: DraftState,
  { values, target }: TestForm,
): Execute {
  const isStored = product.publishedAt === null && isSame(promptOf(draft), promptOf(base));
  return {
    productId: product.id,
    apiKeyId: target.keyId,
    variables: sentValues(draft.variables, values),
    ...(!isStored && { draft: promptOf(draft) }),
    ...(target.model !== "" && { options: { model: target.model } }),
  };
}
