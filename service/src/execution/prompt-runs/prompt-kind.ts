import type { Context } from "../../core/context.ts";
import type { ExecutionKind } from "../executions/kinds.ts";
import { areExpiredLeasesConclusive } from "../executions/leases.ts";
import { cancelAbandoned, type ExecutionRow } from "../executions/queries.ts";
import { parseOffset } from "./event-format.ts";
import { LiveEvents } from "./live-events.ts";
import { streamStoredEvents } from "./stored-events.ts";

export const promptKind: ExecutionKind = {
  isEventId: (lastEventId) => parseOffset(lastEventId) !== null,
  streamEvents(ctx, execution, lastEventId, signal) {
    const live = ctx.liveRuns.get(execution.id);
    const offset = parseOffset(lastEventId) ?? 0;
    return live
      ? new LiveEvents(live, { offset, signal })
      : streamStoredEvents(ctx, execution, offset, signal);
  },
  listModels: async (_db, { model }) => (model === null ? [] : [model]),
  cancel,
};

/** Aborts a run of this process and waits for its end. For other processes `requestCancel` has sent a notification. */
async function cancel(ctx: Context, { id }: ExecutionRow): Promise<void> {
  const live = ctx.liveRuns.get(id);
  if (!live) return void (areExpiredLeasesConclusive(ctx) && (await cancelAbandoned(ctx.db, id, ctx.now())));
  live.abort("canceled");
  await live.waitForEnd();
}
