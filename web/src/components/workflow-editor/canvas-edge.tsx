import {
  BaseEdge,
  type Edge,
  EdgeLabelRenderer,
  type EdgeProps,
  getBezierPath,
  getSmoothStepPath,
  type Position,
} from "@xyflow/react";
import { PlusIcon } from "../icons.tsx";

interface StepEdgeData extends Record<string, unknown> {
  insert: (from: string, to: string) => void;
}

export type StepEdgeType = Edge<StepEdgeData, "step">;

/** A line that is selected offers a step in its middle. */
export function StepEdge(props: EdgeProps<StepEdgeType>) {
  const { source, target, selected, data } = props;
  const [path, x, y] = drawLine(toNodes(props));
  return (
    <>
      <BaseEdge path={path} interactionWidth={16} />
      {selected && (
        <EdgeLabelRenderer>
          <button
            type="button"
            className="workflow-insert nodrag nopan"
            aria-label={`Add a step between ${source} and ${target}`}
            style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}
            onClick={() => data?.insert(source, target)}
          >
            <PlusIcon />
          </button>
        </EdgeLabelRenderer>
      )}
    </>
  );
}

interface LineEnds {
  sourceX: number;
  sourceY: number;
  sourcePosition: Position;
  targetX: number;
  targetY: number;
  targetPosition: Position;
}

/** Its path, and its middle. */
export function drawLine(ends: LineEnds): [path: string, x: number, y: number] {
  const isBack = ends.targetPosition === "left" && ends.targetX < ends.sourceX;
  const [path, x, y] = isBack ? getSmoothStepPath(ends) : getBezierPath(ends);
  return [path, x, y];
}

/** Half of a port's target: the library ends lines at its outside, but the dot in it is smaller. */
const HALF = 16;

function toNodes(props: EdgeProps<StepEdgeType>): LineEnds {
  const isRight = props.sourcePosition === "right";
  return {
    ...props,
    sourceX: props.sourceX - (isRight ? HALF : 0),
    targetX: props.targetX + (isRight ? HALF : 0),
    sourceY: props.sourceY - (isRight ? 0 : HALF),
    targetY: props.targetY + (isRight ? 0 : HALF),
  };
}
