import { hasEnded, isSatisfied, NO_ITEM, type RunState, type Step, type StepRun } from "./run-state.ts";

/** A step, or an item of a map. */
export interface StepRef {
  stepId: string;
  item: number;
}

/** For a map without `maxConcurrency`. */
const DEFAULT_MAP_CONCURRENCY = 5;

/** The failed step that fails the run. */
export const findFailure = (state: RunState): StepRun | undefined =>
  [...state.all()].find(
    (run) => run.item === NO_ITEM && run.status === "failed" && !isSatisfied(run, state.work(run)),
  );

/** Whether only the result of the run is left to evaluate. */
export const isCompleted = (state: RunState): boolean =>
  state.workflow.steps.every((step) => {
    const run = state.find(step.id);
    return run !== undefined && isSatisfied(run, step);
  });

/** Lists steps whose needs are satisfied, and items for which their map has room. */
export const nextSteps = (state: RunState): StepRef[] =>
  state.workflow.steps.flatMap((step) => [...readySteps(state, step), ...readyItems(state, step)]);

function readySteps(state: RunState, step: Step): StepRef[] {
  if (!isOpen(state.find(step.id))) return [];
  const isFree = step.needs.every((id) => {
    const run = state.find(id);
    return run !== undefined && isSatisfied(run, state.step(id));
  });
  return isFree ? [{ stepId: step.id, item: NO_ITEM }] : [];
}

function readyItems(state: RunState, step: Step): StepRef[] {
  const map = state.find(step.id);
  if (step.type !== "map" || map?.status !== "running" || map.items === null) return [];
  const items = state.itemsOf(map);
  const running = items.filter((run) => run && !isOpen(run) && !hasEnded(run)).length;
  const room = Math.max(0, (step.maxConcurrency ?? DEFAULT_MAP_CONCURRENCY) - running);
  return items.flatMap((run, item) => (isOpen(run) ? [{ stepId: step.id, item }] : [])).slice(0, room);
}

const isOpen = (run: StepRun | undefined): boolean => run === undefined || run.status === "queued";

/** The outputs of all items, or the item that failed the map; null: the map continues. */
export function findMapEnd(
  state: RunState,
  map: StepRun,
): { outputs: unknown[] } | { failed: StepRun } | null {
  if (map.items === null) return null;
  const items = state.itemsOf(map);
  const failed = items.find((run) => run?.status === "failed" && !isSatisfied(run, state.work(run)));
  if (failed) return { failed };
  const ended = items.flatMap((run) => (run && hasEnded(run) ? [run] : []));
  return ended.length === items.length ? { outputs: ended.map(({ output }) => output) } : null;
}
