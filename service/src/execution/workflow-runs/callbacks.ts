import type { CallbackSecret, CallbackType } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { findCallbackSecrets, sendCallback } from "../../events/webhooks/callbacks.ts";
import type { Tx } from "../../platform/db/database.ts";
import type { ExecutionRef } from "../executions/texts.ts";
import { readWorkflowExecution } from "./read-execution.ts";

/** A body is at most 256 KiB; this leaves room for its other fields. */
const MAX_OUTPUT_BYTES = 200_000;

/** Queues a callback with the present state of the run, in the transaction that changed it. */
export async function sendRunCallback(
  ctx: Context,
  tx: Tx,
  { id, userId }: ExecutionRef,
  callbackId: string | null,
  waitingFor: string[],
): Promise<void> {
  if (callbackId === null) return;
  const {
    executionId,
    statusUrl,
    eventsUrl: _,
    output,
    ...reported
  } = await readWorkflowExecution(ctx, tx, userId, id);
  const isLarge = Buffer.byteLength(JSON.stringify(output ?? null)) > MAX_OUTPUT_BYTES;
  await sendCallback(ctx, tx, callbackId, `execution.${reported.status}` as CallbackType, {
    execution: {
      id: executionId,
      ...reported,
      output: isLarge ? null : output,
      outputUrl: statusUrl,
      waitingFor,
    },
  });
}

/** Returns no secret: only the response that creates it shows it. */
export async function readCallbackSecret(ctx: Context, { userId }: Member): Promise<CallbackSecret> {
  const [newest, before] = await findCallbackSecrets(ctx, userId);
  return {
    activatedAt: newest?.activatesAt.toISOString() ?? null,
    oldSecretUntil: before?.expiresAt?.toISOString() ?? null,
  };
}
