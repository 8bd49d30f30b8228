import { Position, useReactFlow, useStoreApi } from "@xyflow/react";
import { type PointerEvent as ReactPointerEvent, useEffect, useRef } from "react";
import { NODE } from "../../lib/graph-layout.ts";
import { drawLine, type StepEdgeType } from "./canvas-edge.tsx";
import type { StepNodeType } from "./canvas-node.tsx";

interface Point {
  x: number;
  y: number;
}

/** A press that moves less is a click. */
const THRESHOLD_PX = 3;
/** How near to the edge of the canvas a step moves the view, and how far in a frame. */
const [EDGE_PX, PAN_PX] = [40, 12];
const ABOVE_ALL = "1000";

/**
 * Moves a step with the pointer, and its lines with it. The elements follow without React and the library's store, where each move asks
 * all nodes and lines whether they changed; the document and the store get the new place when the step is dropped.
 */
export function useStepDrag(onMoved: (id: string, position: Point) => void) {
  const flow = useReactFlow<StepNodeType, StepEdgeType>();
  const store = useStoreApi<StepNodeType, StepEdgeType>();
  const end = useRef<(() => void) | null>(null);
  useEffect(() => () => end.current?.(), []);
  return (event: ReactPointerEvent<HTMLElement>) => {
    const target = event.target as Element;
    const element = target.closest<HTMLElement>(".react-flow__node");
    const canvas = store.getState().domNode;
    const node = flow.getNode(element?.dataset["id"] ?? "");
    if (!element || !canvas || !node || event.button !== 0 || !event.isPrimary) return;
    if (target.closest(".react-flow__handle") !== null) return;
    end.current?.();
    end.current = startDrag({ ...{ element, canvas, node, event: event.nativeEvent }, flow, store, onMoved });
  };
}

interface DragOptions {
  element: HTMLElement;
  canvas: HTMLElement;
  node: StepNodeType;
  event: PointerEvent;
  flow: ReturnType<typeof useReactFlow<StepNodeType, StepEdgeType>>;
  store: ReturnType<typeof useStoreApi<StepNodeType, StepEdgeType>>;
  onMoved: (id: string, position: Point) => void;
}

/** Returns the function that ends the drag and puts the step back. */
function startDrag({ element, canvas, node, event: press, flow, store, onMoved }: DragOptions): () => void {
  const box = canvas.getBoundingClientRect();
  const toGraph = ({ x, y }: Point): Point => {
    const [left, top, zoom] = store.getState().transform;
    return { x: (x - box.left - left) / zoom, y: (y - box.top - top) / zoom };
  };
  const start = toGraph(press);
  const lines = linesOf(flow, canvas, node);
  const below = element.style.zIndex;
  let pointer: Point = press;
  let place = node.position;
  let frame = 0;
  let isDragging = false;
  const draw = () => {
    element.style.transform = `translate(${place.x}px,${place.y}px)`;
    for (const line of lines) line(place, isDragging);
  };
  const follow = () => {
    const by = panAt(pointer, box);
    if (by) void store.getState().panBy(by);
    const at = toGraph(pointer);
    place = { x: node.position.x + at.x - start.x, y: node.position.y + at.y - start.y };
    draw();
    frame = by ? requestAnimationFrame(follow) : 0;
  };
  const onMove = (event: PointerEvent) => {
    if (event.pointerId !== press.pointerId) return;
    // The button was released outside of the canvas.
    if (event.buttons === 0) return cancel();
    pointer = event;
    if (!isDragging && Math.hypot(event.x - press.x, event.y - press.y) < THRESHOLD_PX) return;
    if (!isDragging) {
      isDragging = true;
      canvas.setPointerCapture(press.pointerId);
      canvas.classList.add("is-dragging");
      element.dataset["dragged"] = "";
      element.style.zIndex = ABOVE_ALL;
    }
    frame ||= requestAnimationFrame(follow);
  };
  const stop = () => {
    cancelAnimationFrame(frame);
    canvas.removeEventListener("pointermove", onMove);
    for (const type of ENDS) canvas.removeEventListener(type, onEnd);
    canvas.classList.remove("is-dragging");
    delete element.dataset["dragged"];
    element.style.zIndex = below;
  };
  const cancel = () => {
    stop();
    if (!isDragging) return;
    isDragging = false;
    place = node.position;
    draw();
  };
  const onEnd = (event: PointerEvent) => {
    if (event.pointerId !== press.pointerId) return;
    if (event.type !== "pointerup" || !isDragging) return cancel();
    stop();
    isDragging = false;
    pointer = event;
    follow();
    cancelAnimationFrame(frame);
    onMoved(node.id, place);
  };
  canvas.addEventListener("pointermove", onMove);
  for (const type of ENDS) canvas.addEventListener(type, onEnd);
  return cancel;
}

const ENDS = ["pointerup", "pointercancel"] as const;

/** How the view moves while a step is held at its edge; null: it does not. */
function panAt({ x, y }: Point, box: DOMRect): Point | null {
  const along = (at: number, from: number, to: number) =>
    at < from + EDGE_PX ? PAN_PX : at > to - EDGE_PX ? -PAN_PX : 0;
  const by = { x: along(x, box.left, box.right), y: along(y, box.top, box.bottom) };
  return by.x === 0 && by.y === 0 ? null : by;
}

/** The lines of a step, each as a function that draws it for a place of the step. */
function linesOf(flow: DragOptions["flow"], canvas: HTMLElement, node: StepNodeType) {
  return flow
    .getEdges()
    .filter(({ source, target }) => source === node.id || target === node.id)
    .map(({ id, source, target }) => {
      const other = flow.getNode(source === node.id ? target : source)?.position ?? node.position;
      const paths = [...canvas.querySelectorAll(`.react-flow__edge[data-id="${CSS.escape(id)}"] path`)];
      // The path that the pointer hits is not needed while it moves.
      const shown = paths.filter((path) => path.classList.contains("react-flow__edge-path"));
      return (place: Point, isMoving: boolean) => {
        const [from, to] = source === node.id ? [place, other] : [other, place];
        const [path] = drawLine(endsOf(from, to, node.data.direction));
        for (const element of isMoving ? shown : paths) element.setAttribute("d", path);
      };
    });
}

function endsOf(from: Point, to: Point, direction: "right" | "down") {
  const { width, height } = NODE;
  return direction === "right"
    ? {
        ...{ sourceX: from.x + width, sourceY: from.y + height / 2, sourcePosition: Position.Right },
        ...{ targetX: to.x, targetY: to.y + height / 2, targetPosition: Position.Left },
      }
    : {
        ...{ sourceX: from.x + width / 2, sourceY: from.y + height, sourcePosition: Position.Bottom },
        ...{ targetX: to.x + width / 2, targetY: to.y, targetPosition: Position.Top },
      };
}
