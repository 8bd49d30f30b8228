import type { AcceptedExecution, Execute, ExecutionResult } from "@stoa/contract";
import type { Context, Member } from "../context.ts";
import { Accepted, type EventStream, type RequestFacts } from "../http/route.ts";
import { toId } from "../ids.ts";
import { type Prepared, prepare } from "./prepare.ts";
import { carryOut } from "./run.ts";
import { type Run, startRun } from "./runs.ts";
import { streamRun } from "./stream.ts";

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
  const run = await startRun(ctx, caller, prepared, mode);
  if (mode === "stream") return streamRun(ctx, run, prepared, facts.clientGone());
  if (mode === "async") return goOnAlone(ctx, run, prepared);
  return waitFor(ctx, run, prepared, facts.clientGone());
}

/** A stream that was asked for wins over what would only be liked. */
function modeOf({ stream }: Execute, { acceptsEvents, prefer }: Facts): Run["mode"] {
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

function goOnAlone(ctx: Context, run: Run, prepared: Prepared): Accepted {
  void carryOut(ctx, run, prepared);
  const statusUrl = `${ctx.links.origin()}/v1/ai/executions/${toId("exec", run.id)}`;
  const accepted: AcceptedExecution = {
    executionId: toId("exec", run.id),
    status: "running",
    statusUrl,
    eventsUrl: `${statusUrl}/events`,
    createdAt: run.createdAt.toISOString(),
  };
  return new Accepted(accepted, true);
}
