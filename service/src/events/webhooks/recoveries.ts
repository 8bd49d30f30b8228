import type { RecoverWebhook, WebhookRecovery } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import type { JobDefinition } from "../../platform/jobs/job-queue.ts";
import { lockQueues, wakeQueues } from "./delivery-queries.ts";
import { lockEndpoint, mustBeEnabled, mustFindEndpoint } from "./endpoints.ts";
import {
  countRecoverableDeliveries,
  findRecovery,
  insertRecovery,
  lockRecovery,
  type RecoveryRow,
  recoverDeliveries,
  updateRecovery,
} from "./recovery-queries.ts";

const MAX_DAYS = 14;
/** A few milliseconds during which the queue is locked. */
const BATCH_SIZE = 500;

export const recoverJob: JobDefinition = {
  name: "recover-webhook",
  retries: 20,
  retryDelaySeconds: 10,
  maxRetryDelaySeconds: 600,
  attemptTimeoutSeconds: 600,
};

/** Queues a job with the commit. When a worker dies, another continues from the stored progress. */
export async function startRecovery(
  ctx: Context,
  caller: Member,
  webhookId: string,
  input: RecoverWebhook,
): Promise<WebhookRecovery> {
  const span = readTimeRange(ctx, input);
  const id = ctx.newId();
  await ctx.db.transaction().execute(async (tx) => {
    const endpoint = await lockEndpoint(tx, caller, webhookId);
    mustBeEnabled(endpoint);
    await insertRecovery(tx, { ...span, id, endpointId: endpoint.id, createdAt: ctx.now() });
    await ctx.jobs.send(tx, recoverJob.name, { recoveryId: id });
    await ctx.idempotencyKey?.bind(tx, toId("rcv", id));
  });
  return readRecovery(ctx, caller, { webhookId, recoveryId: toId("rcv", id) });
}

function readTimeRange(ctx: Context, input: RecoverWebhook): { since: Date; until: Date } {
  const now = ctx.now();
  const since = new Date(input.since);
  const until = input.until === undefined ? now : new Date(input.until);
  if (since < daysAfter(now, -MAX_DAYS)) throw ruleViolation("since", `is more than ${MAX_DAYS} days ago`);
  if (since > now) throw ruleViolation("since", "is in the future");
  if (until <= since) throw ruleViolation("until", "must be after since");
  return { since, until };
}

export async function readRecovery(
  ctx: Context,
  caller: Member,
  { webhookId, recoveryId }: { webhookId: string; recoveryId: string },
): Promise<WebhookRecovery> {
  const endpoint = await mustFindEndpoint(ctx, caller, webhookId);
  const id = toUuid("rcv", recoveryId);
  const recovery = id ? await findRecovery(ctx.db, endpoint.id, id) : undefined;
  if (!recovery) throw new ApiError("RECOVERY_NOT_FOUND");
  const left = recovery.endedAt ? 0 : await countRecoverableDeliveries(ctx.db, recovery);
  return {
    id: toId("rcv", recovery.id),
    status: recovery.endedAt ? "completed" : "running",
    since: recovery.since.toISOString(),
    until: recovery.until.toISOString(),
    total: recovery.recovered + left,
    recovered: recovery.recovered,
    createdAt: recovery.createdAt.toISOString(),
    endedAt: recovery.endedAt?.toISOString() ?? null,
  };
}

/** Each batch commits its progress. */
export async function runRecovery(ctx: Context, id: string, signal: AbortSignal): Promise<void> {
  while (await recoverBatch(ctx, id)) signal.throwIfAborted();
}

async function recoverBatch(ctx: Context, id: string): Promise<boolean> {
  const found = await findRecovery(ctx.db, null, id);
  if (!found || found.endedAt) return false;
  return ctx.db.transaction().execute(async (tx) => {
    await lockQueues(tx, [found.endpointId]);
    const recovery = await lockRecovery(tx, id);
    if (!recovery || recovery.endedAt) return false;
    const ids = await recoverDeliveries(tx, recovery, BATCH_SIZE, ctx.now());
    await wakeQueues(tx, [recovery.endpointId], ctx.now());
    await updateRecovery(tx, id, toProgress(ctx, recovery, ids));
    return ids.length === BATCH_SIZE;
  });
}

const toProgress = (ctx: Context, recovery: RecoveryRow, ids: string[]) => ({
  recovered: recovery.recovered + ids.length,
  lastDeliveryId: ids.at(-1) ?? recovery.lastDeliveryId,
  ...(ids.length < BATCH_SIZE && { endedAt: ctx.now() }),
});
