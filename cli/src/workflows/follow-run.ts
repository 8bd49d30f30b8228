import type { Stoa, WorkflowExecution, WorkflowStep } from "@stoa/sdk";
import type { Cli } from "../cli.ts";
import { CommandError } from "../errors.ts";
import { withoutControls } from "../output.ts";
import { confirm, isInteractive } from "../prompts.ts";
import { isItemChange, StepBoard, type StepChange } from "./step-board.ts";

export type Decision = "approve" | "reject";

interface FollowOptions {
  stoa: Stoa;
  executionId: string;
  /** The answer to every approval; undefined: a person is asked. */
  decision: Decision | undefined;
}

interface RunEvent {
  id: string;
  type: string;
  data: StepChange & WorkflowExecution;
}

const MAX_RECONNECTS = 20;
const MAX_PAGE = 100;

/** Shows the steps of a run as they happen. Returns the run when it has ended. */
export async function followRun(cli: Cli, options: FollowOptions): Promise<WorkflowExecution> {
  const board = new StepBoard(cli);
  let lastEventId: string | undefined;
  for (;;) {
    const end = await readUntilEnd(cli, board, options, lastEventId);
    // The event of an earlier end: the run was retried since.
    if (isEnded(end.data.status)) return end.data;
    lastEventId = end.id;
  }
}

const isEnded = (status: string): boolean => ["completed", "failed", "canceled"].includes(status);

async function readUntilEnd(
  cli: Cli,
  board: StepBoard,
  options: FollowOptions,
  lastEventId: string | undefined,
): Promise<RunEvent> {
  const { stoa, executionId } = options;
  const events = stoa.ai.executions.events(
    executionId,
    { lastEventId },
    { signal: cli.signal, maxRetries: MAX_RECONNECTS },
  );
  for await (const event of events as AsyncIterable<RunEvent>) {
    if (/^execution\.(completed|failed|canceled)$/.test(event.type)) return event;
    if (!event.type.startsWith("step.")) continue;
    await showChange(board, options, event);
  }
  throw new CommandError(
    "The connection to the run was lost",
    `Follow it again: stoa workflows follow ${executionId}`,
  );
}

async function showChange(board: StepBoard, options: FollowOptions, { type, data }: RunEvent): Promise<void> {
  const isDone = type === "step.completed" && !isItemChange(data);
  const step = isDone ? await findStep(options.stoa, options.executionId, data.stepId) : undefined;
  if (step?.status === "completed") return board.complete(step);
  board.apply(data);
  if (type === "step.waiting" && !isItemChange(data)) await decideIfAsked(board, options, data.stepId);
}

async function findStep(stoa: Stoa, executionId: string, id: string): Promise<WorkflowStep | undefined> {
  for await (const step of stoa.ai.executions.steps(executionId, { limit: MAX_PAGE }))
    if (step.stepId === id && step.index === null) return step;
  return undefined;
}

async function decideIfAsked(board: StepBoard, options: FollowOptions, id: string): Promise<void> {
  const { stoa, executionId, decision } = options;
  const step = await findStep(stoa, executionId, id);
  // The event may be old, or the step may wait for a time.
  if (!step || !isUndecided(step)) return;
  board.release();
  const answer = decision ?? (await askForDecision(executionId, step));
  await decide(stoa, executionId, id, answer).catch((error) => {
    // Another person was first.
    if ((error as { code?: string }).code !== "INVALID_STATE") throw error;
  });
}

/** A step that was decided still waits until a worker goes on with it. */
const isUndecided = ({ type, status, decision }: WorkflowStep): boolean =>
  type === "approval" && status === "waiting" && decision === null;

async function askForDecision(executionId: string, { stepId, prompt }: WorkflowStep): Promise<Decision> {
  const question = withoutControls(prompt ?? `Approve ${stepId}?`);
  const next = `Decide: stoa workflows approve ${executionId} ${stepId}, or reject. Then: stoa workflows follow ${executionId}`;
  if (!isInteractive()) throw new CommandError(`The run waits for an approval: ${question}`, next);
  return (await confirm(question, next)) ? "approve" : "reject";
}

export const decide = (stoa: Stoa, executionId: string, stepId: string, decision: Decision) =>
  stoa.ai.executions[decision](executionId, stepId);

/** The step of a run that waits for an approval. */
export async function findWaitingStep(stoa: Stoa, executionId: string): Promise<string> {
  const waiting: WorkflowStep[] = [];
  for await (const step of stoa.ai.executions.steps(executionId, { limit: MAX_PAGE }))
    if (isUndecided(step)) waiting.push(step);
  const [only, ...others] = waiting;
  if (!only) throw new CommandError(`No step of ${executionId} waits for an approval`);
  if (others.length === 0) return only.stepId;
  throw new CommandError(
    `Several steps wait for an approval: ${waiting.map(({ stepId }) => stepId).join(", ")}`,
    "Name one after the execution.",
  );
}
