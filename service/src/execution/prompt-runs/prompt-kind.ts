import type { Context } from "../../core/context.ts";
import type { ExecutionKind } from "../executions/kinds.ts";
import { tellsDeath } from "../executions/leases.ts";
import { cancelAbandoned, type ExecutionRow } from "../executions/queries.ts";
import { followStored } from "./stored-events.ts";
import { followLive, placeOf } from "./stream-run.ts";

export const promptKind: ExecutionKind = {
  isEventId: (lastEventId) => placeOf(lastEventId) !== null,
  streamEvents(ctx, execution, lastEventId, signal) {
    const live = ctx.live.get(execution.id);
    const place = placeOf(lastEventId) ?? 0;
    return live ? followLive(live, place, signal) : followStored(ctx, execution, place, signal);
  },
  cancel,
};

/** A prompt: here it is given up before this resolves, elsewhere by the notice that requestCancel sends. */
async function cancel(ctx: Context, { id }: ExecutionRow): Promise<void> {
  const live = ctx.live.get(id);
  if (!live) return void (tellsDeath(ctx) && (await cancelAbandoned(ctx.db, id, ctx.now())));
  live.giveUp("canceled");
  await live.ended();
}
