import "./workflow-graph.css";
import { useNavigate } from "@tanstack/react-router";
import { type MouseEvent, memo, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { formatDuration, formatWait } from "../../lib/duration.ts";
import { formatCost } from "../../lib/format.ts";
import { layoutGraph, NODE } from "../../lib/graph-layout.ts";
import { useIsNarrow } from "../../lib/use-is-narrow.ts";
import {
  AlertIcon,
  ApprovalIcon,
  DelayIcon,
  DoneIcon,
  EmbeddingIcon,
  HandIcon,
  MapIcon,
  PackageIcon,
  PromptIcon,
  RunningIcon,
  SkipIcon,
  TransformIcon,
  WaitingIcon,
} from "../icons.tsx";
import { LOOK_WORDS, type ShownStep, type StepLook, stepCost, stepSeconds } from "./step-state.ts";

const TYPE_ICONS: Record<string, ReactNode> = {
  prompt: <PromptIcon />,
  embedding: <EmbeddingIcon />,
  transform: <TransformIcon />,
  map: <MapIcon />,
  approval: <ApprovalIcon />,
  delay: <DelayIcon />,
  product: <PackageIcon />,
};

const LOOK_ICONS: Record<StepLook, ReactNode> = {
  wait: <WaitingIcon />,
  run: <RunningIcon className="turning" />,
  done: <DoneIcon />,
  fail: <AlertIcon />,
  ask: <HandIcon />,
  skip: <SkipIcon />,
};

interface WorkflowGraphProps {
  steps: ShownStep[];
  selected?: string | undefined;
  /** Before a run: the steps are not chosen. */
  isPreview?: boolean;
}

/** The steps of a run as a graph; on narrow screens as a list. */
export default function WorkflowGraph({ steps, selected, isPreview = false }: WorkflowGraphProps) {
  const canvas = useRef<HTMLElement>(null);
  const width = useWidth(canvas);
  // Only the shape decides about the places.
  const shape = useMemo(() => JSON.stringify(steps.map(({ id, needs }) => ({ id, needs }))), [steps]);
  const layout = useMemo(() => layoutGraph(JSON.parse(shape), width), [shape, width]);
  useEffect(() => {
    const element = canvas.current;
    const shown = layout.nodes.get(selected ?? "") ?? layout.nodes.values().next().value;
    if (element && shown) element.scrollLeft = shown.x - (element.clientWidth - NODE.width) / 2;
  }, [layout, selected]);
  const byRank = steps.toSorted(
    (a, b) => (layout.nodes.get(a.id)?.rank ?? 0) - (layout.nodes.get(b.id)?.rank ?? 0),
  );
  const isList = useIsNarrow();
  const openStep = useOpenStep();
  const looks = new Map(steps.map(({ id, look }) => [id, look]));
  return (
    <section className="canvas" aria-label="Steps" ref={canvas}>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the steps are links, whose keys click */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: as above */}
      <div
        className="graph"
        style={isList ? {} : { width: layout.width, height: layout.height }}
        onClick={openStep}
      >
        <svg className="edges" aria-hidden="true">
          {layout.edges.map(({ from, to, path }) => (
            <path key={`${from}>${to}`} d={path} className={EDGES[looks.get(to) ?? "wait"]} />
          ))}
        </svg>
        {byRank.map((step, at) => {
          const place = layout.nodes.get(step.id) ?? NOWHERE;
          const before = byRank[at - 1];
          const isBeside = before !== undefined && layout.nodes.get(before.id)?.rank === place.rank;
          return (
            <Node
              key={step.id}
              step={step}
              place={isList ? null : place}
              isSelected={step.id === selected}
              isPreview={isPreview}
              isBeside={isBeside}
            />
          );
        })}
      </div>
    </section>
  );
}

const NOWHERE = { x: 0, y: 0, rank: 0 };

/** One handler for all steps: as links of the router, each of them would be rendered with every change of the address. */
function useOpenStep() {
  const navigate = useNavigate();
  return (event: MouseEvent) => {
    const link = (event.target as Element).closest<HTMLAnchorElement>("a.node");
    const opensElsewhere =
      event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
    if (link === null || opensElsewhere) return;
    event.preventDefault();
    void navigate({
      to: ".",
      search: (old: object) => ({ ...old, step: link.title }),
      resetScroll: false,
    });
  };
}

function addressOf(id: string): string {
  const search = new URLSearchParams(window.location.search);
  search.set("step", id);
  return `?${search}`;
}

const LOOK_CLASSES: Record<StepLook, string> = {
  wait: "is-waiting",
  run: "is-running",
  done: "is-done",
  fail: "is-failed",
  ask: "is-asking",
  skip: "is-skipped",
};

const EDGES: Record<StepLook, string> = {
  wait: "off",
  run: "act",
  ask: "act",
  done: "",
  fail: "bad",
  skip: "off",
};

/** What the graph can use. */
function useWidth(canvas: React.RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(() => Math.max(320, window.innerWidth - 500));
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      const { paddingInlineStart, paddingInlineEnd } = getComputedStyle(element);
      setWidth(
        element.clientWidth - Number.parseFloat(paddingInlineStart) - Number.parseFloat(paddingInlineEnd),
      );
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [canvas]);
  return width;
}

interface NodeProps {
  step: ShownStep;
  /** null: in the list. */
  place: { x: number; y: number } | null;
  isSelected: boolean;
  isPreview: boolean;
  /** In the list: it does not follow the one above. */
  isBeside: boolean;
}

const Node = memo(function Node({ step, place, isSelected, isPreview, isBeside }: NodeProps) {
  const { id, type, look, items, run } = step;
  const seconds = stepSeconds(run);
  const right = rightLabel(step);
  const detail = detailOf(step);
  const className = `node ${LOOK_CLASSES[look]}${isSelected ? " is-selected" : ""}${isBeside ? " is-beside" : ""}`;
  const style = place ? { left: place.x, top: place.y, width: NODE.width, height: NODE.height } : {};
  const content = (
    <>
      <span className="kind">{TYPE_ICONS[type]}</span>
      <b className="cut">
        {id}
        {!isPreview && <span className="hidden">, {LOOK_WORDS[look]},</span>}
      </b>
      <span className="ns">
        {seconds !== null && look !== "skip" && <em>{formatDuration(seconds)}</em>}
        {LOOK_ICONS[look]}
      </span>
      <small className={right === "" ? "cut w" : "cut"}>{detail}</small>
      {right !== "" && <span className="ct">{right}</span>}
      {items.length > 0 && (
        <span className="prog" aria-hidden="true">
          {items.map(({ index, status }) => (
            <i key={index} className={PROGRESS[status]} />
          ))}
        </span>
      )}
    </>
  );
  if (isPreview)
    return (
      <div className={className} style={style}>
        {content}
      </div>
    );
  return (
    <a
      href={addressOf(id)}
      className={className}
      style={style}
      {...(isSelected ? { "aria-current": "true" } : { "aria-current": undefined })}
      title={id}
    >
      {content}
    </a>
  );
});

const PROGRESS: Record<string, string> = { completed: "x", running: "r", failed: "f" };

function rightLabel(step: ShownStep): string {
  const { look, run, items } = step;
  if (look === "ask") return run?.dueAt ? `${waitUntil(run.dueAt)} left` : "";
  const ended = items.filter(({ status }) => status === "completed").length;
  if (items.length > 0 && look !== "done") return `${ended} of ${items.length}`;
  if (look === "fail") return run && run.attempt > 1 ? `${run.attempt} tries` : "";
  const cost = stepCost(step);
  return cost === null ? "" : cost === 0 ? "free" : formatCost(cost);
}

function detailOf({ type, look, model, run, defined }: ShownStep): string {
  if (look === "ask") return "Waits for you";
  if (look === "fail")
    return defined?.onError === "continue" ? "failed, run continues" : shortReason(run?.error?.code);
  if (run?.decision) return run.decision === "approved" ? "You approved" : "You rejected";
  if (type === "delay") return `waits ${formatWait(defined?.seconds ?? 0)}`;
  return model ?? "";
}

const REASONS: Record<string, string> = {
  PROVIDER_KEY_INVALID: "key refused",
  PROVIDER_KEY_NOT_FOUND: "key is gone",
  PROVIDER_PERMISSION_DENIED: "not allowed",
  PROVIDER_QUOTA_EXHAUSTED: "no credit left",
  PROVIDER_RATE_LIMITED: "too many requests",
  PROVIDER_TIMEOUT: "no answer in time",
  CONTENT_FILTERED: "filtered",
  CONTEXT_LENGTH_EXCEEDED: "prompt too long",
};

const shortReason = (code: string | undefined): string => REASONS[code ?? ""] ?? "failed";

const waitUntil = (iso: string): string => formatWait(Math.max(0, (Date.parse(iso) - Date.now()) / 1_000));
