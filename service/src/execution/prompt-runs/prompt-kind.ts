import type { Context } from "../../core/context.ts";
import type { ExecutionKind } from "../executions/kinds.ts";
import { areExpiredLeasesConclusive } from "../executions/leases.ts";
import { cancelAbandoned, type ExecutionRow } from "../executions/queries.ts";
import { streamStoredEvents } from "./stored-events.ts";
import { parseOffset, streamLiveEvents } from "./stream-run.ts";

export const promptKind: ExecutionKind = {
  isEventId: (lastEventId) => parseOffset(lastEventId) !== null,
  streamEvents(ctx, execution, lastEventId, signal) {
    const live = ctx.liveRuns.get(execution.id);
    const place = parseOffset(lastEventId) ?? 0;
    return live ? streamLiveEvents(live, place, signal) : streamStoredEvents(ctx, execution, place, signal);
  },
  cancel,
};

/** A prompt: here it is given up before this resolves, elsewhere by the notice that requestCancel sends. */
async function cancel(ctx: Context, { id }: ExecutionRow): Promise<void> {
  const live = ctx.liveRuns.get(id);
  if (!live) return void (areExpiredLeasesConclusive(ctx) && (await cancelAbandoned(ctx.db, id, ctx.now())));
  live.abort("canceled");
  await live.waitForEnd();
}
