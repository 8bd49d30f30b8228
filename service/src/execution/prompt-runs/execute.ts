import type { AcceptedExecution, Execute, ExecutionResult } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import { ConcurrencyLimit } from "../../platform/http/concurrency-limit.ts";
import { isFinalError } from "../../platform/http/idempotency.ts";
import { AcceptedResponse, type EventStreamResponse, type RequestInfo } from "../../platform/http/route.ts";
import { mustFindExecution } from "../executions/executions.ts";
import { areExpiredLeasesConclusive } from "../executions/leases.ts";
import { failAbandonedRun } from "../executions/queries.ts";
import { streamExecutionEvents } from "../executions/stream-events.ts";
import { type PreparedRun, prepareRun, readTarget } from "./prepare-run.ts";
import { type RunResult, runPrompt } from "./run-prompt.ts";
import { type PromptRun, startRun } from "./run-record.ts";
import { readOutput, toExecutionResult, toRunError } from "./stored-events.ts";
import { streamRun } from "./stream-run.ts";

/** Each run holds its answer in memory until it ends; the plan limits how many an account may have. */
const concurrencyLimit = new ConcurrencyLimit(
  Number.POSITIVE_INFINITY,
  (limit) =>
    `${limit} runs of your account are active, which is the limit of its plan. Wait until one has ended, or choose a larger plan.`,
);

type Facts = Pick<RequestInfo, "acceptsEvents" | "prefer" | "disconnectSignal">;

/** Runs a prompt with the caller's own provider key. */
export async function executePrompt(
  ctx: Context,
  caller: Member,
  input: Execute,
  info: Facts,
): Promise<ExecutionResult | AcceptedResponse<AcceptedExecution> | EventStreamResponse> {
  const mode = findMode(input, info);
  const { run, prepared, releasePermit } = await beginRun(ctx, caller, input, mode);
  const clientGone = mode === "async" ? null : info.disconnectSignal();
  run.live.abortOn(clientGone);
  const result = runPrompt(ctx, run, prepared).finally(releasePermit);
  if (mode === "async") return new AcceptedResponse(toAccepted(ctx, run, "running"), true);
  try {
    if (mode === "stream") return await streamRun(ctx, run, result, clientGone);
    return resultOrThrow(await result);
  } catch (error) {
    // A refused call was not billed, so the same request may run again under its Idempotency-Key.
    if (error instanceof ApiError && !isFinalError(error.code)) await ctx.idempotencyKey?.unbind();
    throw error;
  }
}

interface BegunRun {
  run: PromptRun;
  prepared: PreparedRun;
  releasePermit: () => void;
}

/** Begins with the remembered target, if the database has the same, else with what it reads. */
async function beginRun(
  ctx: Context,
  caller: Member,
  input: Execute,
  mode: PromptRun["mode"],
): Promise<BegunRun> {
  const known = ctx.runTargets.find(caller, input);
  // An error may come from the stale state of the target, so the request is prepared again.
  const expected = known && (await prepareRun(ctx, input, known).catch(() => null));
  const begun = expected && (await beginPrepared(ctx, caller, expected, mode, { isRemembered: true }));
  if (begun) return begun;
  ctx.runTargets.forget(caller, input);
  const target = await readTarget(ctx, caller, input);
  const prepared = await prepareRun(ctx, input, target);
  const first = await beginPrepared(ctx, caller, prepared, mode, { isRemembered: false });
  ctx.runTargets.remember(caller, input, target);
  return required(first, "a run whose target was just read");
}

/** null: the product, the right to run it or the key has changed since it was remembered. */
async function beginPrepared(
  ctx: Context,
  caller: Member,
  prepared: PreparedRun,
  mode: PromptRun["mode"],
  options: { isRemembered: boolean },
): Promise<BegunRun | null> {
  const releasePermit = acquirePermit(ctx, caller);
  let run: PromptRun | null = null;
  try {
    run = await startRun(ctx, caller, prepared, mode, options);
  } finally {
    if (!run) releasePermit();
  }
  return run && { run, prepared, releasePermit };
}

function acquirePermit(ctx: Context, { userId, plan }: Member): () => void {
  if (ctx.liveRuns.isFull) throw new ApiError("SERVICE_UNAVAILABLE", MEMORY_FULL, undefined, 1);
  return concurrencyLimit.acquire(userId, ctx.config.planConfig.plans[plan].concurrentRuns);
}

const MEMORY_FULL =
  "The answers of active runs fill the memory of this process. No provider was called: send the request again in a second, or when fewer runs are active.";

/**
 * Responds to a repeated Idempotency-Key without another call of the provider. A run is failed when its lease has expired; until
 * then its process may live. null: the provider refused the call.
 */
export async function resumePrompt(
  ctx: Context,
  caller: Member,
  executionId: string,
  mode: PromptRun["mode"],
): Promise<ExecutionResult | AcceptedResponse<AcceptedExecution> | EventStreamResponse | null> {
  const execution = await failIfAbandoned(ctx, caller, executionId);
  const output = await readOutput(ctx, execution);
  const error = toRunError(execution);
  if (error && !isFinalError(error.code)) return null;
  if (mode === "async") return new AcceptedResponse(toAccepted(ctx, execution, execution.status), true);
  if (error && (mode === "sync" || !output)) throw error;
  const isLive = ctx.liveRuns.get(execution.id) !== undefined;
  if (execution.completedAt === null && !(isLive && mode === "stream"))
    throw new ApiError("IDEMPOTENCY_IN_PROGRESS", undefined, undefined, 1);
  if (mode === "stream") return streamExecutionEvents(ctx, caller, executionId, null);
  if (output === null) throw outputNotStored(executionId);
  return toExecutionResult(execution, output) as ExecutionResult;
}

async function failIfAbandoned(ctx: Context, caller: Member, executionId: string) {
  const execution = await mustFindExecution(ctx, caller, executionId);
  if (execution.completedAt !== null || ctx.liveRuns.get(execution.id)) return execution;
  if (areExpiredLeasesConclusive(ctx)) await failAbandonedRun(ctx.db, execution.id, ctx.now());
  return mustFindExecution(ctx, caller, executionId);
}

export const outputNotStored = (executionId: string) =>
  new ApiError(
    "INVALID_STATE",
    `The output of ${executionId} cannot be sent again: its request had options.store false, or it is older than 30 days. GET /v1/ai/executions/${executionId} shows how the run ended; to run it again, send the request under a new Idempotency-Key.`,
    { executionId },
  );

/** `stream: true` takes precedence over the Prefer header. */
export function findMode(
  { stream }: Pick<Execute, "stream">,
  { acceptsEvents, prefer }: Facts,
): PromptRun["mode"] {
  if (stream || acceptsEvents) return "stream";
  return prefer.respondAsync ? "async" : "sync";
}

function resultOrThrow(result: RunResult): ExecutionResult {
  if ("error" in result) throw result.error;
  return result.result;
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
