import "@xyflow/react/dist/base.css";
import "../running/workflow-graph.css";
import "./canvas.css";
import {
  Background,
  type Connection,
  type FitViewOptions,
  MiniMap,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
} from "@xyflow/react";
import {
  type DragEvent,
  type KeyboardEvent,
  memo,
  useCallback,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { NODE } from "../../lib/graph-layout.ts";
import { useKeys } from "../../lib/use-keys.ts";
import { useStableHandler } from "../../lib/use-stable-handler.ts";
import { AddStepDialog } from "./add-step-dialog.tsx";
import { StepEdge, type StepEdgeType } from "./canvas-edge.tsx";
import { findNeighbor, fitBeside, isArrow, useEdges, useNodes } from "./canvas-graph.ts";
import { MinimapStep, StepNode, type StepNodeType } from "./canvas-node.tsx";
import { CanvasSelectionProvider, useCanvasSelection } from "./canvas-selection.ts";
import { CanvasTools, ZoomTools } from "./canvas-tools.tsx";
import { useEditor } from "./editor-context.ts";
import { DRAGGED_TYPE } from "./step-types.tsx";
import { useStepDrag } from "./use-step-drag.ts";

const NODE_TYPES = { step: StepNode };
const EDGE_TYPES = { step: StepEdge };

const EDGE_OPTIONS = { interactionWidth: 16 };

const GRID = 20;
/** In a narrower canvas it would cover the steps, or make them too small. */
const MIN_MINIMAP_WIDTH = 560;

/** The steps as a graph that can be changed. */
export default function Canvas() {
  return (
    <ReactFlowProvider>
      <CanvasArea />
    </ReactFlowProvider>
  );
}

function CanvasArea() {
  const editor = useEditor();
  const { steps, selection, select, execute, addStep } = editor;
  const flow = useReactFlow<StepNodeType, StepEdgeType>();
  const area = useRef<HTMLElement>(null);
  const [width] = useState(() => Math.max(400, window.innerWidth - 620));
  const [connecting, startConnecting] = useState<string | null>(null);
  const [selectedEdge, setSelectedEdge] = useState<string | null>(null);
  const [dialog, setDialog] = useState<{ between?: [string, string] } | null>(null);
  const insert = useCallback((from: string, to: string) => setDialog({ between: [from, to] }), []);
  const { nodes, layout } = useNodes(editor, { width, connecting, startConnecting });
  const edges = useEdges(editor, selectedEdge, insert);
  const hasMinimap = steps.length > 1 && width >= MIN_MINIMAP_WIDTH;
  const fit = useMemo(() => fitBeside(hasMinimap ? layout.direction : null), [hasMinimap, layout.direction]);
  // The library holds the nodes, and the marks are beside them: what changes then renders itself, not the canvas. Before the next key
  // arrives, so that the focus of a step makes its port the next tab stop.
  useLayoutEffect(() => flow.setNodes(nodes), [flow, nodes]);
  const selected = steps.some(({ id }) => id === selection) ? selection : null;
  const tabStop = selected ?? steps[0]?.id ?? null;
  const marks = useCanvasSelection({ selected, tabStop });
  useLayoutEffect(() => marks.set({ selected, tabStop }), [marks, selected, tabStop]);
  const focusStep = (id: string) => {
    select(id);
    area.current
      ?.querySelector<HTMLElement>(`[data-step="${CSS.escape(id)}"]`)
      ?.focus({ preventScroll: true });
    bringIntoView(flow, area.current, id);
  };
  const connect = useStableHandler(({ source, target }: Pick<Connection, "source" | "target">) =>
    execute({ kind: "connect", from: source, to: target }),
  );
  const tidyUp = () => {
    execute({ kind: "tidy-up" });
    requestAnimationFrame(() => void flow.fitView(fit));
  };
  const remove = () => {
    const [from, to] = selectedEdge?.split(">") ?? [];
    if (from !== undefined && to !== undefined) execute({ kind: "disconnect", from, to });
    else if (steps.some(({ id }) => id === selection)) removeStep(selection ?? "");
    setSelectedEdge(null);
  };
  const removeStep = (id: string) => {
    const at = steps.findIndex((step) => step.id === id);
    const next = steps[at - 1]?.id ?? steps[at + 1]?.id;
    execute({ kind: "remove-steps", ids: [id] });
    select(next ?? null);
    if (next === undefined) return;
    requestAnimationFrame(() => {
      const focused = document.activeElement?.closest<HTMLElement>("[data-step]")?.dataset["step"] ?? id;
      // A step that got the focus meanwhile keeps it.
      if (focused === id) focusStep(next);
    });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const id = (event.target as HTMLElement).dataset["step"];
    if (event.key === "Escape") startConnecting(null);
    if (id === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    if (isArrow(event.key)) {
      event.preventDefault();
      const next = findNeighbor(flow.getNodes(), id, event.key);
      if (next !== null) focusStep(next);
    }
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    if (connecting !== null && connecting !== id) connect({ source: connecting, target: id });
    else select(id, { field: "id" });
    startConnecting(null);
  };
  useKeys({
    a: () => setDialog({}),
    l: tidyUp,
    f: () => area.current?.querySelector<HTMLElement>(".workflow-find input")?.focus(),
    Delete: remove,
    Backspace: remove,
  });
  const onPointerDown = useStepDrag((id, position) =>
    execute({ kind: "move-steps", positions: { [id]: position } }),
  );
  const onNodeClick = useStableHandler((_event: unknown, { id }: StepNodeType) => {
    setSelectedEdge(null);
    if (connecting !== null) connect({ source: connecting, target: id });
    // The press of the button has selected what it focused.
    else if (id !== selection) select(id);
    startConnecting(null);
  });
  const onEdgeClick = useStableHandler((_event: unknown, { id }: StepEdgeType) => setSelectedEdge(id));
  const onPaneClick = useStableHandler(() => setSelectedEdge(null));
  const onDrop = (event: DragEvent) => {
    const type = event.dataTransfer.getData(DRAGGED_TYPE);
    if (type === "") return;
    event.preventDefault();
    const { x, y } = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
    const snap = (value: number) => Math.round(value / GRID) * GRID;
    addStep(type, { position: { x: snap(x - NODE.width / 2), y: snap(y - NODE.height / 2) } });
  };
  return (
    <section
      className={connecting === null ? "workflow-canvas" : "workflow-canvas is-connecting"}
      aria-label="Canvas"
      ref={area}
      onKeyDown={onKeyDown}
      onPointerDown={onPointerDown}
      onFocus={({ target }) => {
        const id = target.dataset["step"];
        if (id !== undefined && id !== selection) select(id);
      }}
      onDragOver={(event) => event.dataTransfer.types.includes(DRAGGED_TYPE) && event.preventDefault()}
      onDrop={onDrop}
    >
      <CanvasTools onTidyUp={tidyUp} onFind={focusStep} />
      {connecting !== null && (
        <p className="workflow-hint" role="status">
          Choose the step that needs <b>{connecting}</b>: arrows, then Enter. Esc ends.
        </p>
      )}
      <CanvasSelectionProvider value={marks}>
        <Graph {...{ nodes, edges, fit, hasMinimap, connect, onNodeClick, onEdgeClick, onPaneClick }} />
      </CanvasSelectionProvider>
      <ZoomTools direction={layout.direction} fit={fit} />
      {dialog && (
        <AddStepDialog
          {...(dialog.between && { between: dialog.between })}
          onAdd={(type) => {
            const id = addStep(type, dialog);
            // After the dialog has returned the focus to where it was opened.
            requestAnimationFrame(() => requestAnimationFrame(() => focusStep(id)));
          }}
          onClose={() => setDialog(null)}
        />
      )}
    </section>
  );
}

interface GraphProps {
  nodes: StepNodeType[];
  edges: StepEdgeType[];
  fit: FitViewOptions;
  hasMinimap: boolean;
  connect: (connection: Connection) => void;
  onNodeClick: (event: unknown, node: StepNodeType) => void;
  onEdgeClick: (event: unknown, edge: StepEdgeType) => void;
  onPaneClick: () => void;
}

/** Not rendered when another step is selected. */
const Graph = memo(function Graph({ nodes, edges, fit, hasMinimap, connect, ...handlers }: GraphProps) {
  return (
    <ReactFlow<StepNodeType, StepEdgeType>
      defaultNodes={nodes}
      edges={edges}
      nodeTypes={NODE_TYPES}
      edgeTypes={EDGE_TYPES}
      nodesDraggable={false}
      {...handlers}
      onConnect={connect}
      nodesFocusable={false}
      edgesFocusable={false}
      elementsSelectable={false}
      disableKeyboardA11y
      attributionPosition="bottom-center"
      deleteKeyCode={null}
      selectionKeyCode={null}
      multiSelectionKeyCode={null}
      minZoom={0.2}
      maxZoom={2}
      fitView
      fitViewOptions={fit}
      defaultEdgeOptions={EDGE_OPTIONS}
    >
      <Background gap={GRID} size={1.5} />
      {/* Where useStepDrag shows the lines of the step that moves. */}
      <svg className="workflow-moving-lines" aria-hidden="true" />
      {hasMinimap && (
        <MiniMap
          ariaLabel="Minimap"
          position="bottom-left"
          pannable
          nodeBorderRadius={12}
          nodeClassName={minimapClass}
          nodeComponent={MinimapStep}
        />
      )}
    </ReactFlow>
  );
});

const minimapClass = ({ data: { problem, look } }: StepNodeType): string => (problem ? "bad" : look);

/** Only if it is not seen whole: a canvas that moves with each key makes people lose their place. */
function bringIntoView(
  flow: ReturnType<typeof useReactFlow<StepNodeType, StepEdgeType>>,
  area: HTMLElement | null,
  id: string,
): void {
  const node = flow.getNode(id);
  const box = area?.getBoundingClientRect();
  if (!node || !box) return;
  const from = flow.flowToScreenPosition(node.position);
  const to = flow.flowToScreenPosition({ x: node.position.x + NODE.width, y: node.position.y + NODE.height });
  const isSeen = from.x >= box.left && from.y >= box.top && to.x <= box.right && to.y <= box.bottom;
  if (isSeen) return;
  const { x, y } = node.position;
  void flow.setCenter(x + NODE.width / 2, y + NODE.height / 2, { zoom: flow.getZoom() });
}
