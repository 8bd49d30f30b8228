import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import {
  type ProviderAnswer,
  ProviderError,
  type TokenUsage,
} from "../../integrations/ai-providers/ai-provider.ts";
import { isDatabaseUnavailable } from "../../platform/db/database.ts";
import type { ExecutionMode } from "../executions/queries.ts";
import { sealTexts } from "../executions/texts.ts";
import { type Cost, PRICE_LIST } from "../provider-keys/cost.ts";
import { writeDurably } from "../provider-keys/durable-write.ts";
import {
  type CallResult,
  type OpenCall,
  toCallEnd,
  toOpenCall,
  withReservation,
} from "../provider-keys/provider-calls.ts";
import type { LiveRun } from "./live-runs.ts";
import type { PreparedRun } from "./prepare-run.ts";
import { type ExecutionEnd, insertExecution, type NewExecution } from "./run-queries.ts";
import type { RunTarget } from "./run-targets.ts";

/** A process renews the leases of its runs several times within this time. */
export const RUN_LEASE_MS = 90_000;

/** A run that is inserted as running. The process that started it must end it. */
export interface PromptRun {
  id: string;
  userId: string;
  mode: ExecutionMode;
  /** Sealed with the output at the end; null: options.store is false. */
  variables: Record<string, string> | null;
  createdAt: Date;
  startedAtMs: number;
  live: LiveRun;
  /** The reservation of the key; null: the sandbox. */
  call: OpenCall | null;
}

/**
 * Inserts the run and its reservation before the call of the provider. `isRemembered`: only if the database still has the target; null:
 * it has another, and nothing is inserted.
 */
export async function startRun(
  ctx: Context,
  caller: Member,
  prepared: PreparedRun,
  mode: ExecutionMode,
  { isRemembered }: { isRemembered: boolean },
): Promise<PromptRun | null> {
  const id = ctx.newId();
  const createdAt = ctx.now();
  let call = toOpenCall(ctx, prepared.key, { ...prepared, executionId: id });
  // Registered before the row exists, because a cancellation may follow the row at once.
  const live = ctx.liveRuns.begin(id);
  try {
    const run = toRow(caller, prepared, { id, mode, createdAt });
    const { refusedBy, ...reserved } = await insertRun(ctx, run, call, isRemembered ? prepared : null);
    if (refusedBy === "changed") {
      ctx.liveRuns.remove(id);
      return null;
    }
    call &&= withReservation(call, refusedBy ? { refusedBy } : reserved);
  } catch (error) {
    ctx.liveRuns.remove(id);
    throw error;
  }
  return {
    ...{ id, userId: caller.userId, mode, createdAt, live, call },
    variables: prepared.options.store ? prepared.variables : null,
    startedAtMs: performance.now(),
  };
}

/** Binds the run to its Idempotency-Key, so that no repeated request calls the provider again. */
async function insertRun(
  ctx: Context,
  run: NewExecution,
  call: OpenCall | null,
  remembered: RunTarget | null,
): ReturnType<typeof insertExecution> {
  const reservation = call?.reservation ?? null;
  const { idempotencyKey } = ctx;
  if (!idempotencyKey) return ctx.runWriter.begin(run, reservation, remembered);
  return ctx.db.transaction().execute(async (tx) => {
    const reserved = await insertExecution(tx, run, reservation, remembered);
    if (!reserved.refusedBy) await idempotencyKey.bind(tx, toId("exec", run.id));
    return reserved;
  });
}

const toRow = (
  { userId }: Member,
  { product, version, key, model }: PreparedRun,
  run: Pick<PromptRun, "id" | "mode" | "createdAt">,
): NewExecution => ({
  ...run,
  userId,
  productId: product.id,
  productVersion: version,
  providerKeyId: key.id,
  provider: key.provider,
  model,
  leaseUntil: new Date(run.createdAt.getTime() + RUN_LEASE_MS),
});

const durationOf = (run: PromptRun) => Math.round(performance.now() - run.startedAtMs);

/** The provider may have billed the call, so a failed write must not lose the answer. */
function recordEnd(ctx: Context, run: PromptRun, values: ExecutionEnd, result: CallResult): Promise<void> {
  const callEnd = toCallEnd(ctx, run.call, result);
  const write = async () => {
    if (!(await ctx.runWriter.end(run.id, values, callEnd)))
      ctx.log.warn({ execution: run.id }, "a run ended after another process had failed or canceled it");
  };
  return writeDurably(ctx, { execution: run.id }, write, (written) => {
    run.live.pendingEnd = written;
  });
}

/** The usage of the call, counted by the provider or estimated, and its cost. */
export interface RunUsage {
  usage: TokenUsage;
  cost: Cost;
}

const usageColumns = ({ usage, cost }: RunUsage) => ({
  promptTokens: usage.promptTokens,
  completionTokens: usage.completionTokens,
  costUsd: cost.estimatedCost,
  costKnown: cost.costKnown,
  priceList: PRICE_LIST,
  usageEstimated: usage.estimated ?? false,
});

/** Records the answer and returns the duration in milliseconds. */
export async function recordCompleted(
  ctx: Context,
  run: PromptRun,
  answer: ProviderAnswer,
  cost: Cost,
): Promise<number> {
  const durationMs = durationOf(run);
  const ended: ExecutionEnd = {
    status: "completed",
    model: answer.model,
    sealedTexts: run.variables && sealTexts(ctx, run, { variables: run.variables, output: answer.output }),
    finishReason: answer.finishReason,
    attempts: answer.attempts,
    ...usageColumns({ usage: answer.usage, cost }),
    durationMs,
    completedAt: ctx.now(),
  };
  await recordEnd(ctx, run, ended, { cost });
  return durationMs;
}

/** Records a failure and returns the error to throw. Neither quotes the prompt or the key. */
export async function recordFailed(
  ctx: Context,
  run: PromptRun,
  cause: unknown,
  spent: RunUsage | null,
): Promise<ApiError> {
  const { recorded, error } = toFailure(ctx, run, cause);
  const { text, abortReason } = run.live;
  const variables = text.length > 0 ? run.variables : null;
  const ended: ExecutionEnd = {
    status: abortReason ? "canceled" : "failed",
    errorCode: recorded,
    errorMessage: error.message,
    ...(variables && { sealedTexts: sealTexts(ctx, run, { variables, output: String(text) }) }),
    ...(cause instanceof ProviderError && { fault: JSON.stringify(cause.details) }),
    attempts: cause instanceof ProviderError ? cause.attempts : 0,
    ...(spent && usageColumns(spent)),
    durationMs: durationOf(run),
    completedAt: ctx.now(),
  };
  await recordEnd(ctx, run, ended, { cause, cost: spent?.cost ?? null });
  return error;
}

export const cancelMessages = {
  client_gone: "The client disconnected.",
  canceled: "The execution was canceled.",
  account_banned: "The account was banned.",
  account_closed: "The account was closed.",
} as const;

function toFailure(ctx: Context, { id, live }: PromptRun, cause: unknown) {
  const executionId = toId("exec", id);
  if (cause instanceof ProviderError) {
    const details = { ...cause.details, executionId };
    const error = new ApiError(cause.code, cause.message, details, cause.retryAfterSeconds);
    return { recorded: cause.code, error };
  }
  if (live.abortReason) {
    const details = { executionId, current: "canceled" };
    return {
      recorded: live.abortReason,
      error: new ApiError("INVALID_STATE", cancelMessages[live.abortReason], details),
    };
  }
  if (ctx.shutdown.aborted) {
    const message = "The service is shutting down; the call was aborted.";
    return { recorded: "shutdown", error: new ApiError("SERVICE_UNAVAILABLE", message, { executionId }) };
  }
  if (isDatabaseUnavailable(cause)) {
    return {
      recorded: "SERVICE_UNAVAILABLE",
      error: new ApiError("SERVICE_UNAVAILABLE", undefined, { executionId }),
    };
  }
  ctx.log.error({ execution: id, err: cause }, "a run failed unexpectedly");
  return { recorded: "INTERNAL_ERROR", error: new ApiError("INTERNAL_ERROR", undefined, { executionId }) };
}
