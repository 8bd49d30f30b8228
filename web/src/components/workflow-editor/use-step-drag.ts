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
 * Moves a step with the pointer, and its lines with it. What moves has its own layers and follows without React and the library's store,
 * where each move asks all nodes and lines whether they changed; the document and the store get the new place when the step is dropped.
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
  let moving: { step: MovingPart; lines: MovingPart } | null = null;
  let pointer: Point = press;
  let place = node.position;
  let frame = 0;
  const follow = () => {
    const by = panAt(pointer, box);
    if (by) void store.getState().panBy(by);
    const at = toGraph(pointer);
    place = { x: node.position.x + at.x - start.x, y: node.position.y + at.y - start.y };
    moving?.step.draw(place);
    moving?.lines.draw(place);
    frame = by ? requestAnimationFrame(follow) : 0;
  };
  const onMove = (event: PointerEvent) => {
    if (event.pointerId !== press.pointerId) return;
    // The button was released outside of the canvas.
    if (event.buttons === 0) return cancel();
    pointer = event;
    if (!moving && Math.hypot(event.x - press.x, event.y - press.y) < THRESHOLD_PX) return;
    if (!moving) {
      canvas.setPointerCapture(press.pointerId);
      canvas.classList.add("is-dragging");
      moving = { step: moveStep(element), lines: moveLines(flow, canvas, node) };
    }
    frame ||= requestAnimationFrame(follow);
  };
  const stopAt = (end: Point) => {
    cancelAnimationFrame(frame);
    canvas.removeEventListener("pointermove", onMove);
    for (const type of ENDS) canvas.removeEventListener(type, onEnd);
    canvas.classList.remove("is-dragging");
    moving?.step.end(end);
    moving?.lines.end(end);
    moving = null;
  };
  const cancel = () => stopAt(node.position);
  const onEnd = (event: PointerEvent) => {
    if (event.pointerId !== press.pointerId) return;
    if (event.type !== "pointerup" || !moving) return cancel();
    pointer = event;
    follow();
    stopAt(place);
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

const translate = ({ x, y }: Point): string => `translate(${x}px,${y}px)`;

/** What follows the pointer until the step is dropped. */
interface MovingPart {
  draw: (place: Point) => void;
  end: (place: Point) => void;
}

/** The browser moves the layer of an animated element alone. If a style moves the element, the browser arranges all layers anew. */
function moveStep(element: HTMLElement): MovingPart {
  const below = element.style.zIndex;
  const effect = new KeyframeEffect(element, null, { duration: 1, fill: "both" });
  const animation = new Animation(effect);
  element.dataset["dragged"] = "";
  element.style.zIndex = ABOVE_ALL;
  animation.pause();
  return {
    draw(place: Point) {
      effect.setKeyframes({ transform: [translate(place), translate(place)] });
    },
    end(place: Point) {
      element.style.transform = translate(place);
      animation.cancel();
      element.style.zIndex = below;
      delete element.dataset["dragged"];
    },
  };
}

const SVG = "http://www.w3.org/2000/svg";
/** Two dots far outside of what is seen. */
const FAR_DOTS = "M-8000-8000h1v1zM8000 8000h1v1z";

/**
 * While the step moves, copies stand for its lines, in a layer below the graph. A line among the others makes the browser place and paint
 * the whole graph for each frame.
 */
function moveLines(flow: DragOptions["flow"], canvas: HTMLElement, node: StepNodeType): MovingPart {
  const layer = canvas.querySelector<SVGElement>(".workflow-moving-lines");
  const viewport = canvas.querySelector<HTMLElement>(".react-flow__viewport");
  const lines = flow
    .getEdges()
    .filter(({ source, target }) => source === node.id || target === node.id)
    .flatMap(({ id, source, target }) => {
      const line = canvas.querySelector<SVGElement>(`.react-flow__edge[data-id="${CSS.escape(id)}"]`);
      const path = line?.querySelector(".react-flow__edge-path")?.cloneNode() as SVGElement | undefined;
      if (!line || !path) return [];
      const copy = document.createElementNS(SVG, "g");
      copy.setAttribute("class", line.getAttribute("class") ?? "");
      copy.append(path);
      const other = flow.getNode(source === node.id ? target : source)?.position ?? node.position;
      return [{ line, copy, path, isOutgoing: source === node.id, other }];
    });
  for (const { line } of lines) line.dataset["dragged"] = "";
  // If the bounds of the layer change, the browser compares them with all others and arranges all layers anew.
  const bounds = document.createElementNS(SVG, "path");
  bounds.setAttribute("d", FAR_DOTS);
  layer?.append(bounds, ...lines.map(({ copy }) => copy));
  return {
    draw(place: Point) {
      const transform = viewport?.style.transform ?? "";
      // The view moves rarely, and the same value would cost as much as another one.
      if (layer && layer.style.transform !== transform) layer.style.transform = transform;
      for (const { path, isOutgoing, other } of lines) {
        const [from, to] = isOutgoing ? [place, other] : [other, place];
        path.setAttribute("d", drawLine(endsOf(from, to, node.data.direction))[0]);
      }
    },
    end() {
      bounds.remove();
      for (const { line, copy } of lines) {
        delete line.dataset["dragged"];
        copy.remove();
      }
    },
  };
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
