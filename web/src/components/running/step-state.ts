import type { WorkflowStep } from "@stoa/sdk";
import type { DefinedStep } from "../../lib/workflow-definition.ts";

/** How a step of a run is shown. */
export type StepLook = "wait" | "run" | "done" | "fail" | "ask" | "skip";

export interface ShownStep {
  id: string;
  type: string;
  needs: string[];
  /** null: it has not started. */
  run: WorkflowStep | null;
  /** Of a map, in order. */
  items: WorkflowStep[];
  look: StepLook;
  /** A prompt's model, or what is asked for. */
  model: string | null;
  defined: DefinedStep | null;
}

const LOOKS: Record<string, StepLook> = {
  queued: "wait",
  running: "run",
  completed: "done",
  failed: "fail",
  canceled: "skip",
  skipped: "skip",
};

function lookOf(run: WorkflowStep | null): StepLook {
  if (run === null) return "wait";
  if (run.status === "waiting") return run.type === "approval" ? "ask" : "run";
  return LOOKS[run.status] ?? "wait";
}

/** The steps of the definition with what has become of them. Without a definition: those that have started, in a row. */
export function showSteps(defined: DefinedStep[] | null, runs: WorkflowStep[]): ShownStep[] {
  const whole = new Map(runs.filter(({ index }) => index === null).map((run) => [run.stepId, run]));
  const items = Map.groupBy(
    runs.filter(({ index }) => index !== null),
    ({ stepId }) => stepId,
  );
  const itemsOf = (id: string) => (items.get(id) ?? []).toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0));
  if (defined)
    return defined.map((step) => {
      const run = whole.get(step.id) ?? null;
      const work = step.do ?? step;
      const model = run?.model ?? itemsOf(step.id)[0]?.model ?? work.model ?? null;
      return {
        ...{ id: step.id, type: step.type, needs: step.needs, run, items: itemsOf(step.id) },
        ...{ look: lookOf(run), model, defined: step },
      };
    });
  const started = [...whole.values()].toReversed();
  return started.map((run, at) => ({
    id: run.stepId,
    type: run.type,
    needs: at === 0 ? [] : [started[at - 1]?.stepId ?? ""],
    run,
    items: itemsOf(run.stepId),
    look: lookOf(run),
    model: run.model,
    defined: null,
  }));
}

/** USD; null: it has none, or no price is known. */
export function stepCost({ run, items }: ShownStep): number | null {
  const parts = items.length > 0 ? items : run ? [run] : [];
  const costs = parts.flatMap(({ usage }) => (usage ? [usage] : []));
  if (costs.length === 0 || costs.some(({ costKnown }) => !costKnown)) return null;
  return costs.reduce((sum, { estimatedCost }) => sum + estimatedCost, 0);
}

/** Seconds; null: it has not ended. */
export const stepSeconds = (run: WorkflowStep | null): number | null =>
  run?.startedAt && run.endedAt ? (Date.parse(run.endedAt) - Date.parse(run.startedAt)) / 1_000 : null;

export const TYPE_NAMES: Record<string, string> = {
  prompt: "Prompt",
  embedding: "Embedding",
  transform: "Transform",
  map: "Map",
  approval: "Approval",
  delay: "Delay",
  product: "Product",
};

export const LOOK_WORDS: Record<StepLook, string> = {
  wait: "not started",
  run: "running",
  done: "completed",
  fail: "failed",
  ask: "waits for your approval",
  skip: "skipped",
};
