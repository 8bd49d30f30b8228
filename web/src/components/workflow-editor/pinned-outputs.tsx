import { useState } from "react";
import { ancestorsOf, type EditedStep } from "../../lib/workflow-document.ts";
import type { ReplayedRun } from "./earlier-runs.tsx";
import { useEditor } from "./editor-context.ts";

type Texts = Readonly<Record<string, string>>;

interface PinState {
  /** As JSON; an empty one is not pinned. */
  texts: Texts;
  recorded: Texts;
}

export type Pins = ReturnType<typeof usePins>;

/** Outputs that a test takes as they are: of the steps before `stepId`, or without one of those that a run recorded. */
export function usePins(stepId: string | undefined) {
  const { steps, run } = useEditor();
  const [{ texts, recorded }, set] = useState<PinState>(() => {
    const shown = stepId === undefined ? {} : print(run?.outputs ?? {});
    return { texts: shown, recorded: shown };
  });
  const offered = stepId === undefined ? Object.keys(recorded) : ancestorsOf(steps, stepId);
  const entries = steps.flatMap(({ id }) => (offered.includes(id) ? [[id, texts[id] ?? ""] as const] : []));
  const outputs: Record<string, unknown> = {};
  let error: string | null = null;
  for (const [id, text] of entries) {
    if (text.trim() === "") continue;
    try {
      outputs[id] = JSON.parse(text);
    } catch {
      error ??= id;
    }
  }
  const change = (id: string, text: string) =>
    set((old) => ({ ...old, texts: { ...old.texts, [id]: text } }));
  const replay = (replayed: ReplayedRun | null) => {
    const printed = print(replayed?.outputs ?? {});
    const rerun = new Set(stepId === undefined ? listRerun(steps, replayed?.changedSteps ?? []) : []);
    const pinned = Object.entries(printed).filter(([id]) => !rerun.has(id));
    set({ texts: Object.fromEntries(pinned), recorded: printed });
  };
  return { entries, recorded, outputs, error, change, replay };
}

const print = (outputs: Readonly<Record<string, unknown>>): Texts =>
  Object.fromEntries(
    Object.entries(outputs).map(([id, output]) => [id, JSON.stringify(output, null, 2) ?? ""]),
  );

/** What was changed, and all that reads it. */
const listRerun = (steps: EditedStep[], changed: string[]): string[] =>
  steps
    .map(({ id }) => id)
    .filter((id) => changed.includes(id) || ancestorsOf(steps, id).some((one) => changed.includes(one)));

export function PinnedOutputs({ pins: { entries, recorded, error, change } }: { pins: Pins }) {
  if (entries.length === 0) return null;
  return (
    <details open>
      <summary className="m">Pinned outputs</summary>
      <div className="stack">
        {entries.map(([id, text]) => (
          <div className="field" key={id}>
            <div className="row between">
              <label className="m mono cut" htmlFor={`pin-${id}`}>
                {id}
              </label>
              {text === "" && recorded[id] !== undefined && (
                <button type="button" className="btn quiet s" onClick={() => change(id, recorded[id] ?? "")}>
                  Pin the recorded one<span className="hidden"> for {id}</span>
                </button>
              )}
              {text !== "" && (
                <button type="button" className="btn quiet s" onClick={() => change(id, "")}>
                  Run it instead<span className="hidden"> for {id}</span>
                </button>
              )}
            </div>
            <textarea
              id={`pin-${id}`}
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
          </div>
        ))}
      </div>
    </details>
  );
}
