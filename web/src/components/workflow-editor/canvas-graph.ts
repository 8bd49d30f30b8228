import type { FitViewOptions } from "@xyflow/react";
import { useMemo, useRef } from "react";
import { formatDuration } from "../../lib/duration.ts";
import { formatCost } from "../../lib/format.ts";
import { layoutGraph, NODE } from "../../lib/graph-layout.ts";
import { needsOf, textOf } from "../../lib/workflow-document.ts";
import { type ShownStep, stepCost, stepSeconds } from "../running/step-state.ts";
import type { StepEdgeType } from "./canvas-edge.tsx";
import type { StepNodeType } from "./canvas-node.tsx";
import type { WorkflowEditor } from "./editor-context.ts";
import { detailOf } from "./step-types.tsx";

interface GraphOptions {
  width: number;
  /** null: no port was chosen. */
  connecting: string | null;
  startConnecting: (id: string) => void;
}

/** The nodes of the canvas. What did not change stays the same object, so that it is not rendered again. */
export function useNodes(
  { steps, document, problems, run }: WorkflowEditor,
  { width, connecting, startConnecting }: GraphOptions,
) {
  const shape = JSON.stringify(steps.map((step) => ({ id: step.id, needs: needsOf(step) })));
  const layout = useMemo(() => layoutGraph(JSON.parse(shape), width), [shape, width]);
  const known = useRef(new Map<string, { print: string; node: StepNodeType }>());
  const last = useRef<StepNodeType[]>([]);
  const nodes = useMemo(() => {
    const runs = new Map(run?.steps.map((step) => [step.id, step]));
    const next = new Map<string, { print: string; node: StepNodeType }>();
    for (const step of steps) {
      const { id } = step;
      const problem = problems.find(({ stepId }) => stepId === id)?.sentence ?? null;
      const place = document.positions[id] ?? layout.nodes.get(id) ?? { x: 0, y: 0 };
      const data = {
        ...{ id, type: textOf(step["type"]), detail: detailOf(step), problem },
        ...describeRun(runs.get(id)),
        ...{ direction: layout.direction, isConnecting: connecting === id },
      };
      const position = { x: place.x, y: place.y };
      const print = JSON.stringify([data, position]);
      const old = known.current.get(id);
      const node: StepNodeType =
        old?.print === print
          ? old.node
          : {
              // The canvas does not follow the pointer that drags a step.
              ...{ id, type: "step", className: "nopan", position, data: { ...data, startConnecting } },
              ...{ width: NODE.width, height: NODE.height, measured: NODE },
            };
      next.set(id, { print, node });
    }
    known.current = next;
    const all = [...next.values()].map(({ node }) => node);
    const isSame = all.length === last.current.length && all.every((node, at) => node === last.current[at]);
    if (!isSame) last.current = all;
    return last.current;
  }, [steps, document.positions, problems, run, layout, connecting, startConnecting]);
  return { nodes, layout };
}

function describeRun(step: ShownStep | undefined) {
  const seconds = step?.run ? stepSeconds(step.run) : null;
  const cost = step?.run ? stepCost(step) : null;
  return {
    look: step?.look ?? ("wait" as const),
    seconds: seconds === null ? "" : formatDuration(seconds),
    cost: cost === null || cost === 0 ? "" : formatCost(cost),
  };
}

const EDGE_LOOKS: Record<string, string> = { run: "act", ask: "act", fail: "bad" };

export function useEdges(
  { steps, run }: WorkflowEditor,
  selected: string | null,
  insert: (from: string, to: string) => void,
): StepEdgeType[] {
  return useMemo(() => {
    const looks = new Map(run?.steps.map(({ id, look }) => [id, EDGE_LOOKS[look]]));
    const ids = new Set(steps.map(({ id }) => id));
    return steps.flatMap((step) =>
      needsOf(step)
        .filter((need) => ids.has(need))
        .map((need): StepEdgeType => {
          const id = `${need}>${step.id}`;
          const className = looks.get(step.id);
          return {
            ...{
              id,
              type: "step",
              source: need,
              target: step.id,
              data: { insert },
              selected: id === selected,
            },
            ...(className !== undefined && { className }),
          };
        }),
    );
  }, [steps, run, selected, insert]);
}

const PADDING = 0.16;
/** With the minimap below a graph to the right, or left of one that goes down. */
const PADDINGS = {
  right: { x: PADDING, top: PADDING, bottom: "128px" },
  down: { right: PADDING, y: PADDING, left: "200px" },
} as const;

/** Shows the whole graph, and none of it under the minimap; null: there is no minimap. */
export const fitBeside = (direction: "right" | "down" | null): FitViewOptions => ({
  maxZoom: 1,
  padding: direction === null ? PADDING : PADDINGS[direction],
});

type Direction = "ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown";

export const isArrow = (key: string): key is Direction => /^Arrow(Left|Right|Up|Down)$/.test(key);

/** The nearest step in a direction; what lies aside counts twice. */
export function findNeighbor(nodes: readonly StepNodeType[], from: string, key: Direction): string | null {
  const start = nodes.find(({ id }) => id === from)?.position;
  if (!start) return nodes[0]?.id ?? null;
  const isSideways = key === "ArrowLeft" || key === "ArrowRight";
  const sign = key === "ArrowLeft" || key === "ArrowUp" ? -1 : 1;
  const ranked = nodes.flatMap(({ id, position }) => {
    const [dx, dy] = [position.x - start.x, position.y - start.y];
    const [along, aside] = isSideways ? [dx * sign, Math.abs(dy)] : [dy * sign, Math.abs(dx)];
    return id !== from && along > 0 ? [{ id, distance: along + 2 * aside }] : [];
  });
  return ranked.sort((a, b) => a.distance - b.distance)[0]?.id ?? null;
}
