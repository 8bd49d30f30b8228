import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import type { JobDefinition } from "../../platform/jobs/job-queue.ts";
import { deleteDeliveryLogBatch, lockQueues } from "./delivery-queries.ts";
import { deleteEndpointsOfUser, listEndpointIds, updateEndpoint } from "./endpoint-queries.ts";
import { markEndpointDeleted } from "./endpoints.ts";

const DELETE_BATCH_SIZE = 500;

export const deleteWebhookLogJob: JobDefinition = {
  name: "delete-webhooks-of-closed-account",
  retries: 20,
  retryDelaySeconds: 10,
  maxRetryDelaySeconds: 600,
  attemptTimeoutSeconds: 600,
};

/** Disables the endpoints and removes their URLs. A job deletes the delivery log, which may be large. */
export async function deleteWebhooksOnAccountClosed(ctx: Context, tx: Tx, userId: string): Promise<void> {
  const ids = await listEndpointIds(tx, userId);
  await lockQueues(tx, ids);
  for (const id of ids) {
    await markEndpointDeleted(ctx, tx, id);
    await updateEndpoint(tx, id, { url: "", description: "", updatedAt: ctx.now() });
  }
  await ctx.jobs.send(tx, deleteWebhookLogJob.name, { userId });
}

/** Deletes in batches, so that no delivery worker waits long for a lock. */
export async function deleteWebhookLog(ctx: Context, userId: string, signal: AbortSignal): Promise<void> {
  while ((await deleteDeliveryLogBatch(ctx.db, userId, DELETE_BATCH_SIZE)) > 0) signal.throwIfAborted();
  await deleteEndpointsOfUser(ctx.db, userId);
}
