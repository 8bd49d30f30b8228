import { required } from "../../core/required.ts";
import type { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";

export type Step = Workflow["steps"][number];
type MapStep = Extract<Step, { type: "map" }>;
/** The work of a step, or of one item of a map. */
export type StepWork = Step | MapStep["do"];

/** The item number of the step itself. */
export const NO_ITEM = -1;

export interface StepError {
  code: string;
  /** Contains nothing of a prompt, an output or a key. */
  message: string;
}

export interface UsageSum {
  promptTokens: number;
  completionTokens: number;
  costUsd: number;
  costKnown: boolean;
  estimated: boolean;
}

export type StepStatus = "queued" | "running" | "waiting" | "completed" | "failed" | "skipped" | "canceled";

/** The progress of a step or of one item of a map. */
export interface StepRun {
  stepId: string;
  item: number;
  n: number;
  status: StepStatus;
  /** Calls made. */
  attempt: number;
  /** Calls that `retry` caused. */
  retries: number;
  /** Calls that a process may have made before it died. */
  repeats: number;
  /** Number of items of a map; null before it starts. */
  items: number | null;
  /** The execution that does the step's work; null: none. */
  childRunId: string | null;
  /** When a waiting step goes on, or a running step times out. */
  dueAt: Date | null;
  output: unknown;
  error: StepError | null;
  provider: string | null;
  model: string | null;
  usage: UsageSum | null;
  decision: "approved" | "rejected" | null;
  decidedAt: Date | null;
  startedAt: Date | null;
  endedAt: Date | null;
}

export const stepKey = (stepId: string, item: number): string =>
  item === NO_ITEM ? stepId : `${stepId}#${item}`;

/** The steps and items of a workflow run that have begun. */
export class RunState {
  readonly workflow: Workflow;
  readonly #runs = new Map<string, StepRun>();
  #last = 0;

  constructor(workflow: Workflow, runs: readonly StepRun[]) {
    this.workflow = workflow;
    for (const run of runs) this.#add(run);
  }

  get count(): number {
    return this.#runs.size;
  }

  all(): IterableIterator<StepRun> {
    return this.#runs.values();
  }

  find(stepId: string, item = NO_ITEM): StepRun | undefined {
    return this.#runs.get(stepKey(stepId, item));
  }

  /** Begins a step, for the first time or again. */
  begin(stepId: string, item: number, now: Date): StepRun {
    const existing = this.find(stepId, item);
    if (existing)
      return Object.assign(existing, { status: "running", startedAt: now, endedAt: null, dueAt: null });
    const run: StepRun = { ...NEW_STEP_RUN, stepId, item, n: this.#last + 1, startedAt: now };
    this.#add(run);
    return run;
  }

  step(stepId: string): Step {
    return required(
      this.workflow.steps.find(({ id }) => id === stepId),
      `the step ${stepId}`,
    );
  }

  work({ stepId, item }: Pick<StepRun, "stepId" | "item">): StepWork {
    const step = this.step(stepId);
    return item !== NO_ITEM && step.type === "map" ? step.do : step;
  }

  /** Gives steps their outputs, so that they do not run. They have no rows: each driver pins them again. */
  pin(outputs: Readonly<Record<string, unknown>>): void {
    for (const [stepId, output] of Object.entries(outputs))
      this.#add({
        ...NEW_STEP_RUN,
        stepId,
        item: NO_ITEM,
        n: 0,
        status: "completed",
        startedAt: null,
        output,
      });
  }

  /** The items of a map; undefined: not begun. */
  itemsOf({ stepId, items }: StepRun): (StepRun | undefined)[] {
    return Array.from({ length: items ?? 0 }, (_, index) => this.find(stepId, index));
  }

  /** The outputs of ended steps, as expressions read them. */
  outputs(): Record<string, { output: unknown }> {
    return Object.fromEntries(
      this.workflow.steps.flatMap(({ id }) => {
        const run = this.find(id);
        return run && hasEnded(run) ? [[id, { output: run.output }] as const] : [];
      }),
    );
  }

  #add(run: StepRun): void {
    this.#runs.set(stepKey(run.stepId, run.item), run);
    this.#last = Math.max(this.#last, run.n);
  }
}

const NEW_STEP_RUN = {
  status: "running",
  attempt: 0,
  retries: 0,
  repeats: 0,
  items: null,
  childRunId: null,
  dueAt: null,
  output: null,
  error: null,
  provider: null,
  model: null,
  usage: null,
  decision: null,
  decidedAt: null,
  endedAt: null,
} as const;

const END_STATUSES: ReadonlySet<StepStatus> = new Set<StepStatus>([
  "completed",
  "failed",
  "skipped",
  "canceled",
]);

export const hasEnded = ({ status }: StepRun): boolean => END_STATUSES.has(status);

/** Whether steps that need this one may begin. A failed step with `onError: continue` outputs null. */
export const isSatisfied = (run: StepRun, work: StepWork): boolean =>
  run.status === "completed" ||
  run.status === "skipped" ||
  (run.status === "failed" && work.onError === "continue");

export const NO_USAGE: UsageSum = {
  promptTokens: 0,
  completionTokens: 0,
  costUsd: 0,
  costKnown: true,
  estimated: false,
};

export const addUsage = (a: UsageSum, b: UsageSum): UsageSum => ({
  promptTokens: a.promptTokens + b.promptTokens,
  completionTokens: a.completionTokens + b.completionTokens,
  costUsd: a.costUsd + b.costUsd,
  costKnown: a.costKnown && b.costKnown,
  estimated: a.estimated || b.estimated,
});

export const sumUsage = (runs: Iterable<StepRun>): UsageSum =>
  [...runs].reduce((sum, { usage }) => (usage ? addUsage(sum, usage) : sum), NO_USAGE);
