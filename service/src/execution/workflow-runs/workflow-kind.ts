import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import type { Queries } from "../../platform/db/database.ts";
import type { StreamedEvent } from "../../platform/http/route.ts";
import type { ExecutionKind } from "../executions/kinds.ts";
import { type ExecutionEventRow, findLastEvent, hasRunEnded, listEventsAfter } from "./queries.ts";
import { readWorkflowExecution } from "./read-execution.ts";
import { listAllSteps } from "./run-queries.ts";
import { NO_ITEM } from "./run-state.ts";
import { waitForEnd } from "./wait-for-end.ts";

const POLL_MS = 250;
/** The driver gets a notification, so most cancellations end within this time. */
const CANCEL_WITHIN_MS = 1_000;
const ENDS: ReadonlySet<string> = new Set(["execution.completed", "execution.failed", "execution.canceled"]);

/** How the execution history reads and cancels workflow runs. */
export const workflowKind: ExecutionKind<AsyncIterable<StreamedEvent>> = {
  isEventId: (lastEventId) => lastEventId === null || /^\d{1,9}$/.test(lastEventId),
  async *streamEvents(ctx, { id, userId }, lastEventId, signal) {
    let after = Number(lastEventId ?? 0);
    while (!signal.aborted) {
      // Read before the events: an ended run then has all its events.
      const hasEnded = await hasRunEnded(ctx.db, id);
      const events = await listEventsAfter(ctx.db, id, after);
      for (const event of events) {
        yield await toStreamedEvent(ctx, userId, id, event);
        after = event.seq;
        if (ENDS.has(event.type)) return;
      }
      if (events.length > 0) continue;
      if (hasEnded) {
        // A client that has all events, or sends an unknown id, still gets the final event.
        const end = await findLastEvent(ctx.db, id);
        if (end) yield await toStreamedEvent(ctx, userId, id, end);
        return;
      }
      await waitForNotification(ctx, id, signal);
    }
  },
  listModels: async (db, { id }) => [...new Set(await modelsOf(db, id))],
  listStepUsage: async (db, { id }) => (await listAllSteps(db, id)).map(toStepUsage),
  // A trigger has already signaled the run.
  cancel: async (ctx, { id }) => void (await waitForEnd(ctx, id, CANCEL_WITHIN_MS)),
};

/** With those of the workflows that its steps ran; their depth is limited. */
async function modelsOf(db: Queries, id: string): Promise<string[]> {
  const models: string[] = [];
  for (const { model, childRunId } of await listAllSteps(db, id)) {
    if (model !== null) models.push(model);
    if (childRunId !== null) models.push(...(await modelsOf(db, childRunId)));
  }
  return models;
}

export const durationOf = ({ startedAt, endedAt }: { startedAt: Date | null; endedAt: Date | null }) =>
  startedAt && endedAt && endedAt.getTime() - startedAt.getTime();

const toStepUsage = (step: Awaited<ReturnType<typeof listAllSteps>>[number]) => ({
  id: step.stepId,
  item: step.item === NO_ITEM ? null : step.item,
  status: step.status,
  attempts: step.attempt,
  executionId: step.childRunId && toId("exec", step.childRunId),
  ...{ provider: step.provider, model: step.model },
  ...{ promptTokens: step.promptTokens, completionTokens: step.completionTokens, estimated: step.estimated },
  estimatedCost: step.costUsd === null ? null : Number(step.costUsd),
  costKnown: step.costKnown,
  durationMs: durationOf(step),
});

async function waitForNotification(ctx: Context, id: string, signal: AbortSignal): Promise<void> {
  const reported = new AbortController();
  const unsubscribe = ctx.runNotifications.onRun(id, () => reported.abort());
  await sleep(POLL_MS, null, { signal: AbortSignal.any([signal, reported.signal]) }).catch(() => {});
  unsubscribe();
}

/** The data of the final event is the whole execution. */
async function toStreamedEvent(
  ctx: Context,
  userId: string,
  id: string,
  event: ExecutionEventRow,
): Promise<StreamedEvent> {
  const { seq, type, createdAt } = event;
  const data = ENDS.has(type)
    ? await readWorkflowExecution(ctx, ctx.db, userId, id)
    : { ...event.data, at: createdAt.toISOString() };
  return { id: String(seq), type, data: JSON.stringify(data) };
}
