import type { AcceptedExecution, Execute, ExecutionResult } from "@stoa/contract";
import type { Context, Member } from "../context.ts";
import { ApiError } from "../errors.ts";
import { isFinalFor } from "../http/idempotency.ts";
import { Accepted, type EventStream, type RequestFacts } from "../http/route.ts";
import { Slots } from "../http/slots.ts";
import { toId } from "../ids.ts";
import { promptKind, streamExecution } from "./events.ts";
import { mustFind } from "./executions.ts";
import { type Prepared, prepare } from "./prepare.ts";
import { failAbandonedRun } from "./queries.ts";
import { errorOf, outputOf, resultOf } from "./replay.ts";
import { carryOut } from "./run.ts";
import { type Run, startRun } from "./runs.ts";
import { streamRun } from "./stream.ts";

const MAX_ALONE = 100;
/** They hold their text in memory, and no connection limits them. */
const alone = new Slots(MAX_ALONE, `${MAX_ALONE} executions of yours go on without you already.`);

type Facts = Pick<RequestFacts, "acceptsEvents" | "prefer" | "clientGone">;

/** Runs a prompt once with the caller's own key: what they may run, rendered, called, priced and recorded. */
export async function executePrompt(
  ctx: Context,
  caller: Member,
  wish: Execute,
  facts: Facts,
): Promise<ExecutionResult | Accepted | EventStream> {
  const prepared = await prepare(ctx, caller, wish);
  const mode = modeOf(wish, facts);
  if (mode === "async") return goOnAlone(ctx, caller, prepared);
  const run = await startRun(ctx, caller, prepared, mode);
  try {
    if (mode === "stream") return await streamRun(ctx, run, prepared, facts.clientGone());
    return await waitFor(ctx, run, prepared, facts.clientGone());
  } catch (error) {
    // The provider refused the call, so that nobody is billed: the same request may be sent again.
    if (error instanceof ApiError && !isFinalFor(error.code)) await ctx.idempotencyKey?.unbind();
    throw error;
  }
}

/**
 * Of a run that was written under the same Idempotency-Key: how it stands, without another call of the provider. One that still runs
 * is a dead process's, since a live one would hold the key: it has failed. null: the provider refused it.
 */
export async function resumePrompt(
  ctx: Context,
  caller: Member,
  executionId: string,
  mode: Run["mode"],
): Promise<ExecutionResult | Accepted | EventStream | null> {
  const execution = await endIfAbandoned(ctx, caller, executionId);
  const output = await outputOf(ctx, execution);
  const error = errorOf(execution);
  if (error && !isFinalFor(error.code)) return null;
  if (mode === "async") return new Accepted(toAccepted(ctx, execution, execution.status), true);
  if (error && (mode === "sync" || !output)) throw error;
  if (mode === "stream") return streamExecution(ctx, caller, executionId, null, { PROMPT: promptKind });
  if (execution.completedAt === null) throw new ApiError("IDEMPOTENCY_IN_PROGRESS", undefined, undefined, 1);
  if (output === null) throw notKept(executionId);
  return resultOf(execution, output) as ExecutionResult;
}

async function endIfAbandoned(ctx: Context, caller: Member, executionId: string) {
  const execution = await mustFind(ctx, caller, executionId);
  if (execution.completedAt !== null || ctx.live.get(execution.id)) return execution;
  await failAbandonedRun(ctx.db, execution.id, ctx.now());
  return mustFind(ctx, caller, executionId);
}

export const notKept = (executionId: string) =>
  new ApiError("INVALID_STATE", "The output of this run is not kept, so that it cannot be sent again.", {
    executionId,
  });

/** A stream that was asked for wins over what would only be liked. */
export function modeOf({ stream }: Pick<Execute, "stream">, { acceptsEvents, prefer }: Facts): Run["mode"] {
  if (stream || acceptsEvents) return "stream";
  return prefer.respondAsync ? "async" : "sync";
}

async function waitFor(
  ctx: Context,
  run: Run,
  prepared: Prepared,
  clientGone: AbortSignal | null,
): Promise<ExecutionResult> {
  run.live.giveUpOn(clientGone);
  const outcome = await carryOut(ctx, run, prepared);
  if ("error" in outcome) throw outcome.error;
  return outcome.result;
}

async function goOnAlone(ctx: Context, caller: Member, prepared: Prepared): Promise<Accepted> {
  const leave = alone.enter(caller.userId);
  try {
    const run = await startRun(ctx, caller, prepared, "async");
    void carryOut(ctx, run, prepared).finally(leave);
    return new Accepted(toAccepted(ctx, run, "running"), true);
  } catch (error) {
    leave();
    throw error;
  }
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
