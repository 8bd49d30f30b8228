import { Handle, type MiniMapNodeProps, type Node, type NodeProps, Position } from "@xyflow/react";
import { type KeyboardEvent, memo } from "react";
import { AlertIcon, DoneIcon, HandIcon, RunningIcon, SkipIcon } from "../icons.tsx";
import { LOOK_WORDS, type StepLook } from "../running/step-state.ts";
import { useStepMarks } from "./canvas-selection.ts";
import { STEP_ICONS } from "./step-types.tsx";

export interface StepNodeData extends Record<string, unknown> {
  id: string;
  type: string;
  detail: string;
  /** Time and cost of the shown run. */
  seconds: string;
  cost: string;
  look: StepLook;
  problem: string | null;
  direction: "right" | "down";
  /** Another step waits for the choice of what needs it. */
  isConnecting: boolean;
  startConnecting: (id: string) => void;
}

export type StepNodeType = Node<StepNodeData, "step">;

const LOOK_CLASSES: Record<StepLook, string> = {
  wait: "",
  run: "is-running",
  done: "is-done",
  fail: "is-failed",
  ask: "is-asking",
  skip: "is-skipped",
};

const LOOK_ICONS: Partial<Record<StepLook, React.ReactNode>> = {
  run: <RunningIcon className="turning" />,
  done: <DoneIcon />,
  fail: <AlertIcon />,
  ask: <HandIcon />,
  skip: <SkipIcon />,
};

/** A step on the canvas. The library moves the element around it. */
export const StepNode = memo(function StepNode({ data }: NodeProps<StepNodeType>) {
  const { id, type, detail, look, problem, direction } = data;
  const { isSelected, hasTabStop } = useStepMarks(id);
  const isRight = direction === "right";
  const tabIndex = hasTabStop ? 0 : -1;
  const onPort = (event: KeyboardEvent) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    data.startConnecting(id);
  };
  return (
    <>
      <Handle type="target" position={isRight ? Position.Left : Position.Top} aria-hidden="true" />
      {/* biome-ignore lint/a11y/useSemanticElements: the library drags the node, which a button would stop */}
      <div
        role="button"
        tabIndex={tabIndex}
        data-step={id}
        aria-pressed={isSelected}
        className={`node ${problem ? "is-failed" : LOOK_CLASSES[look]}${isSelected ? " is-selected" : ""}`}
      >
        <span className="kind">{STEP_ICONS[type]}</span>
        <b className="cut">
          {id}
          <span className="hidden">
            , {type}, {problem ?? LOOK_WORDS[look]}
          </span>
        </b>
        <span className="ns">
          {data.seconds !== "" && <em>{data.seconds}</em>}
          {problem ? <AlertIcon /> : LOOK_ICONS[look]}
        </span>
        <small className={data.cost === "" ? "cut w" : "cut"}>{detail || type}</small>
        {data.cost !== "" && <span className="ct">{data.cost}</span>}
      </div>
      <Handle
        type="source"
        position={isRight ? Position.Right : Position.Bottom}
        role="button"
        tabIndex={tabIndex}
        aria-label={`Connect from ${id}`}
        className={data.isConnecting ? "on" : ""}
        onKeyDown={onPort}
      />
      {problem && <span className="workflow-node-error">{problem}</span>}
    </>
  );
});

/** A step in the minimap. */
export const MinimapStep = memo(function MinimapStep(props: MiniMapNodeProps) {
  const { id, x, y, width, height, borderRadius, className, shapeRendering } = props;
  const { isSelected } = useStepMarks(id);
  const look = isSelected && className !== "bad" ? "on" : className;
  return (
    <rect
      className={`react-flow__minimap-node ${look}`}
      {...{ x, y, width, height, shapeRendering }}
      rx={borderRadius}
      ry={borderRadius}
    />
  );
});
