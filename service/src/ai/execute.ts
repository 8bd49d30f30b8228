import type { AcceptedExecution, Execute, ExecutionResult } from "@stoa/contract";
import type { Context, Member } from "../context.ts";
import { Accepted, type EventStream, type RequestFacts } from "../http/route.ts";
import { Slots } from "../http/slots.ts";
import { toId } from "../ids.ts";
import { type Prepared, prepare } from "./prepare.ts";
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
  if (mode === "stream") return streamRun(ctx, run, prepared, facts.clientGone());
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

async function goOnAlone(ctx: Context, caller: Member, prepared: Prepared): Promise<Accepted> {
  const leave = alone.enter(caller.userId);
  try {
    const run = await startRun(ctx, caller, prepared, "async");
    void carryOut(ctx, run, prepared).finally(leave);
    return new Accepted(toAccepted(ctx, run), true);
  } catch (error) {
    leave();
    throw error;
  }
}

function toAccepted(ctx: Context, { id, createdAt }: Run): AcceptedExecution {
  const executionId = toId("exec", id);
  const statusUrl = `${ctx.links.origin()}/v1/ai/executions/${executionId}`;
  return {
    ...{ executionId, status: "running", statusUrl, eventsUrl: `${statusUrl}/events` },
    createdAt: createdAt.toISOString(),
  };
}
