import { type FitViewOptions, useReactFlow, useStore } from "@xyflow/react";
import { memo, useId, useState } from "react";
import { formatCost, formatCount, formatTime } from "../../lib/format.ts";
import type { EditedStep } from "../../lib/workflow-document.ts";
import { ColumnsIcon, PlusIcon, SearchIcon } from "../icons.tsx";
import { useEditor } from "./editor-context.ts";

interface CanvasToolsProps {
  onTidyUp: () => void;
  onFind: (id: string) => void;
}

export function CanvasTools({ onTidyUp, onFind }: CanvasToolsProps) {
  const { steps, run, isReadable } = useEditor();
  const usage = run?.execution.usage;
  return (
    <div className="workflow-tools">
      <span className="sm soft grow cut">
        {isReadable ? (
          <>
            {formatCount(steps.length)} {steps.length === 1 ? "step" : "steps"}
            {run && `, last run ${formatTime(run.execution.createdAt)}`}
            {usage?.costKnown && usage.estimatedCost > 0 && `, ${formatCost(usage.estimatedCost)}`}
          </>
        ) : (
          <span className="bad">The source is not valid JSON: the canvas shows what it was before.</span>
        )}
      </span>
      <FindStep onFind={onFind} />
      <button type="button" className="btn s" onClick={onTidyUp}>
        <ColumnsIcon /> Tidy up <span className="kbd">L</span>
      </button>
    </div>
  );
}

/** By a part of its id; Enter leads to the first one. */
function FindStep({ onFind }: { onFind: (id: string) => void }) {
  const { steps } = useEditor();
  const [text, setText] = useState("");
  const listId = useId();
  const find = (value: string) => {
    const wanted = value.trim().toLowerCase();
    const found =
      steps.find(({ id }) => id.toLowerCase() === wanted) ??
      steps.find(({ id }) => wanted !== "" && id.toLowerCase().includes(wanted));
    if (found) onFind(found.id);
  };
  return (
    <label className="workflow-find">
      <SearchIcon />
      <span className="hidden">Find a step</span>
      <input
        placeholder="Find a step"
        list={listId}
        autoComplete="off"
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          if (steps.some(({ id }) => id === target.value)) find(target.value);
        }}
        onKeyDown={(event) => event.key === "Enter" && find(text)}
      />
      <span className="kbd">F</span>
      <StepOptions listId={listId} steps={steps} />
    </label>
  );
}

const StepOptions = memo(function StepOptions({ listId, steps }: { listId: string; steps: EditedStep[] }) {
  return (
    <datalist id={listId}>
      {steps.map(({ id }) => (
        <option key={id} value={id} />
      ))}
    </datalist>
  );
});

interface ZoomToolsProps {
  direction: "right" | "down";
  fit: FitViewOptions;
}

export function ZoomTools({ direction, fit }: ZoomToolsProps) {
  const flow = useReactFlow();
  const zoom = useStore(({ transform }) => Math.round(transform[2] * 100));
  return (
    <div className="workflow-zoom seg s" data-direction={direction}>
      <button type="button" aria-label="Zoom out" onClick={() => void flow.zoomOut()}>
        <MinusIcon />
      </button>
      <button
        type="button"
        className="num"
        aria-label={`Zoom ${zoom} %, back to 100 %`}
        onClick={() => void flow.zoomTo(1)}
      >
        {zoom} %
      </button>
      <button type="button" aria-label="Zoom in" onClick={() => void flow.zoomIn()}>
        <PlusIcon />
      </button>
      <button type="button" onClick={() => void flow.fitView(fit)}>
        Fit
      </button>
    </div>
  );
}

const MinusIcon = () => (
  <svg
    className="i"
    viewBox="0 0 24 24"
    fill="none"
    stroke="currentColor"
    strokeWidth="1.75"
    aria-hidden="true"
  >
    <path d="M5 12h14" strokeLinecap="round" />
  </svg>
);
