import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import type { JobKind } from "../../platform/jobs/jobs.ts";
import { deleteLogOf, lockLanes } from "./delivery-queries.ts";
import { deleteEndpointsOf, listEndpointIds, updateEndpoint } from "./endpoint-queries.ts";
import { endEndpoint } from "./endpoints.ts";

const AT_ONCE = 500;

export const forgetWebhooksJob: JobKind = {
  name: "forget-webhooks-of-closed",
  retries: 20,
  firstWaitSeconds: 10,
  longestWaitSeconds: 600,
  attemptSeconds: 600,
};

/**
 * Of somebody who leaves: nothing is posted for them any more, and nothing tells where it went. What their receivers were sent and
 * answered, which may be much, a job deletes.
 */
export async function forgetWebhooks(ctx: Context, tx: Tx, userId: string): Promise<void> {
  const ids = await listEndpointIds(tx, userId);
  await lockLanes(tx, ids);
  for (const id of ids) {
    await endEndpoint(ctx, tx, id);
    await updateEndpoint(tx, id, { url: "", description: "", updated_at: ctx.now() });
  }
  await ctx.jobs.send(tx, forgetWebhooksJob.name, { userId });
}

/** The job: some at a time, so that nobody who delivers waits for a lock for long. */
export async function forgetLogOfClosed(ctx: Context, userId: string, signal: AbortSignal): Promise<void> {
  while ((await deleteLogOf(ctx.db, userId, AT_ONCE)) > 0) signal.throwIfAborted();
  await deleteEndpointsOf(ctx.db, userId);
}
