import type { AcceptedExecution, Execute, ExecutionResult } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { ConcurrencyLimit } from "../../platform/http/concurrency-limit.ts";
import { isFinalError } from "../../platform/http/idempotency.ts";
import { AcceptedResponse, type EventStreamResponse, type RequestInfo } from "../../platform/http/route.ts";
import { mustFind } from "../executions/executions.ts";
import { tellsDeath } from "../executions/leases.ts";
import { failAbandonedRun } from "../executions/queries.ts";
import { streamExecution } from "../executions/stream-events.ts";
import { prepare } from "./prepare-run.ts";
import { promptKind } from "./prompt-kind.ts";
import { carryOut, type Outcome } from "./run-prompt.ts";
import { type Run, startRun } from "./run-record.ts";
import { errorOf, outputOf, resultOf } from "./stored-events.ts";
import { streamRun } from "./stream-run.ts";

/** Each holds its answer in memory until it has ended; the plan says how many an account may have. */
const running = new ConcurrencyLimit(
  Number.POSITIVE_INFINITY,
  (most) =>
    `${most} runs of your account are under way, which is the most that its plan allows at once. Wait until one has ended, or choose a larger plan.`,
);

type Facts = Pick<RequestInfo, "acceptsEvents" | "prefer" | "disconnectSignal">;

/** Runs a prompt once with the caller's own key: what they may run, rendered, called, priced and recorded. */
export async function executePrompt(
  ctx: Context,
  caller: Member,
  wish: Execute,
  facts: Facts,
): Promise<ExecutionResult | AcceptedResponse | EventStreamResponse> {
  const prepared = await prepare(ctx, caller, wish);
  const mode = modeOf(wish, facts);
  const leave = enter(ctx, caller);
  const run = await startRun(ctx, caller, prepared, mode).catch((error) => {
    leave();
    throw error;
  });
  const clientGone = mode === "async" ? null : facts.disconnectSignal();
  run.live.giveUpOn(clientGone);
  const outcome = carryOut(ctx, run, prepared).finally(leave);
  if (mode === "async") return new AcceptedResponse(toAccepted(ctx, run, "running"), true);
  try {
    if (mode === "stream") return await streamRun(ctx, run, outcome, clientGone);
    return resultOfOutcome(await outcome);
  } catch (error) {
    // The provider refused the call, so that nobody is billed: the same request may be sent again.
    if (error instanceof ApiError && !isFinalError(error.code)) await ctx.idempotencyKey?.unbind();
    throw error;
  }
}

function enter(ctx: Context, { userId, plan }: Member): () => void {
  if (ctx.live.isFull) throw new ApiError("SERVICE_UNAVAILABLE", TOO_MUCH_HELD, undefined, 1);
  return running.acquire(userId, ctx.config.planConfig.plans[plan].concurrentRuns);
}

const TOO_MUCH_HELD =
  "The answers of the runs under way fill the memory of this process of the service. Nothing was called: send the request again in a second, or when fewer runs are under way.";

/**
 * Of a run that was written under the same Idempotency-Key: how it stands, without another call of the provider. One that still
 * runs has failed once its lease is over; until then its process may live. null: the provider refused it.
 */
export async function resumePrompt(
  ctx: Context,
  caller: Member,
  executionId: string,
  mode: Run["mode"],
): Promise<ExecutionResult | AcceptedResponse | EventStreamResponse | null> {
  const execution = await endIfAbandoned(ctx, caller, executionId);
  const output = await outputOf(ctx, execution);
  const error = errorOf(execution);
  if (error && !isFinalError(error.code)) return null;
  if (mode === "async") return new AcceptedResponse(toAccepted(ctx, execution, execution.status), true);
  if (error && (mode === "sync" || !output)) throw error;
  const isLive = ctx.live.get(execution.id) !== undefined;
  if (execution.completedAt === null && !(isLive && mode === "stream"))
    throw new ApiError("IDEMPOTENCY_IN_PROGRESS", undefined, undefined, 1);
  if (mode === "stream") return streamExecution(ctx, caller, executionId, null, { PROMPT: promptKind });
  if (output === null) throw notKept(executionId);
  return resultOf(execution, output) as ExecutionResult;
}

async function endIfAbandoned(ctx: Context, caller: Member, executionId: string) {
  const execution = await mustFind(ctx, caller, executionId);
  if (execution.completedAt !== null || ctx.live.get(execution.id)) return execution;
  if (tellsDeath(ctx)) await failAbandonedRun(ctx.db, execution.id, ctx.now());
  return mustFind(ctx, caller, executionId);
}

export const notKept = (executionId: string) =>
  new ApiError(
    "INVALID_STATE",
    `The output of ${executionId} cannot be sent again: its request had options.store false, or it is older than 30 days. GET /v1/ai/executions/${executionId} shows how the run ended; to run it again, send the request under a new Idempotency-Key.`,
    { executionId },
  );

/** A stream that was asked for wins over what would only be liked. */
export function modeOf({ stream }: Pick<Execute, "stream">, { acceptsEvents, prefer }: Facts): Run["mode"] {
  if (stream || acceptsEvents) return "stream";
  return prefer.respondAsync ? "async" : "sync";
}

function resultOfOutcome(outcome: Outcome): ExecutionResult {
  if ("error" in outcome) throw outcome.error;
  return outcome.result;
}

function toAccepted(
  ctx: Context,
  { id, createdAt }: { id: string; createdAt: Date },
  status: AcceptedExecution["status"],
): AcceptedExecution {
  const executionId = toId("exec", id);
  const statusUrl = `${ctx.links.origin()}/v1/ai/executions/${executionId}`;
  return {
    ...{ executionId, status, statusUrl, eventsUrl: `${statusUrl}/events` },
    createdAt: createdAt.toISOString(),
  };
}
