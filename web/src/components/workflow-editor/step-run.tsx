import { stoa } from "../../api.ts";
import { formatTime } from "../../lib/format.ts";
import { showError } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import type { EditedStep } from "../../lib/workflow-document.ts";
import { PlayIcon } from "../icons.tsx";
import { JsonText } from "../json-text.tsx";
import { LOOK_WORDS } from "../running/step-state.ts";
import { useEditor } from "./editor-context.ts";

export function StepRun({ step }: { step: EditedStep }) {
  const { openTest } = useEditor();
  return (
    <button type="button" className="btn s" onClick={() => openTest(step.id)}>
      <PlayIcon /> Run step
    </button>
  );
}

/** What a step gave in the shown run, or what it waits for. */
export function StepResult({ step }: { step: EditedStep }) {
  const { run } = useEditor();
  const shown = run?.steps.find(({ id }) => id === step.id);
  if (!run || !shown?.run) return null;
  const { output, error, prompt } = shown.run;
  return (
    <section className="beam thin stack workflow-result" aria-label={`Last run of ${step.id}`}>
      <h3 className="h3">
        Last run <span className="faint">{formatTime(run.execution.createdAt)}</span>
      </h3>
      <p className="sm" role="status">
        {step.id} {LOOK_WORDS[shown.look]}
      </p>
      {shown.look === "ask" && <Decision executionId={run.execution.id} stepId={step.id} prompt={prompt} />}
      {error && <p className="ferr">{error.message}</p>}
      {shown.look === "done" && <JsonText text={JSON.stringify(output)} />}
    </section>
  );
}

interface DecisionProps {
  executionId: string;
  stepId: string;
  prompt: string | null;
}

function Decision({ executionId, stepId, prompt }: DecisionProps) {
  const { start, isPending } = useAction({
    run: (kind: "approve" | "reject", idempotencyKey) =>
      stoa.ai.executions[kind](executionId, stepId, { idempotencyKey }),
    onError: (error) => showError("The step was not decided", error),
  });
  return (
    <>
      <p dir="auto">{prompt}</p>
      <div className="row">
        <button type="button" className="btn s" disabled={isPending} onClick={() => start("approve")}>
          Approve
        </button>
        <button type="button" className="btn s danger" disabled={isPending} onClick={() => start("reject")}>
          Reject
        </button>
      </div>
    </>
  );
}
