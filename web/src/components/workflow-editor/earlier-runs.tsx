import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { formatMoment } from "../../lib/format.ts";
import { showError } from "../../lib/toasts.ts";
import { executionQuery, stepsQuery } from "../../queries/running.ts";
import { checkQuery, workflowRunsQuery } from "../../queries/workflow-editor.ts";
import { useEditor } from "./editor-context.ts";

/** A run that took place, to be repeated on what the editor shows now. */
export interface ReplayedRun {
  input: Record<string, unknown>;
  /** The recorded outputs by step. */
  outputs: Record<string, unknown>;
  changedSteps: string[];
}

interface EarlierRunsProps {
  stepId: string | undefined;
  /** null: without an earlier run. */
  onChoose: (replayed: ReplayedRun | null) => void;
}

/** Chooses the run whose input and outputs a test begins with. */
export function EarlierRuns({ stepId, onChoose }: EarlierRunsProps) {
  const { product, document, run } = useEditor();
  const client = useQueryClient();
  const { data: runs = [] } = useQuery(workflowRunsQuery(product.id));
  // A step alone begins with the shown run; a whole run with its input only, so that each step runs.
  const [chosen, setChosen] = useState(stepId === undefined ? "" : (run?.execution.id ?? ""));
  const latest = useRef(chosen);
  if (runs.length === 0) return null;
  const choose = async (id: string) => {
    setChosen(id);
    latest.current = id;
    try {
      const replayed = id === "" ? null : await readRun(client, id, document.text);
      if (latest.current === id) onChoose(replayed);
    } catch (error) {
      showError("The run could not be read", error);
    }
  };
  const isKnown = chosen === "" || runs.some(({ id }) => id === chosen);
  return (
    <label className="field">
      <span className="m">Replay an earlier run</span>
      <select className="input" value={chosen} onChange={({ target }) => void choose(target.value)}>
        <option value="">{stepId === undefined ? "No: each step runs" : "No: with what you pin"}</option>
        {!isKnown && <option value={chosen}>The shown run</option>}
        {runs.map(({ id, createdAt, status, productVersion }) => (
          <option key={id} value={id}>
            {formatMoment(createdAt)}, {status}, {productVersion}
          </option>
        ))}
      </select>
    </label>
  );
}

async function readRun(client: QueryClient, id: string, content: string): Promise<ReplayedRun> {
  const [{ variables }, rows, { changedSteps }] = await Promise.all([
    client.fetchQuery(executionQuery(id)),
    client.fetchQuery(stepsQuery(id)),
    client.fetchQuery(checkQuery(content, { executionId: id })),
  ]);
  const completed = rows.filter(({ index, status }) => index === null && status === "completed");
  return {
    input: variables ?? {},
    outputs: Object.fromEntries(completed.map(({ stepId, output }) => [stepId, output])),
    changedSteps,
  };
}
