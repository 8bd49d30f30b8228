import type { Context, Member } from "../../core/context.ts";
import { invalidRequest } from "../../core/errors.ts";
import { required } from "../../core/required.ts";
import { ConcurrencyLimit } from "../../platform/http/concurrency-limit.ts";
import { EventStreamResponse } from "../../platform/http/route.ts";
import { mustFindExecution } from "./executions.ts";
import type { ExecutionKinds } from "./kinds.ts";

const MAX_STREAMS = 100;
const streams = new ConcurrencyLimit(
  MAX_STREAMS,
  `${MAX_STREAMS} streams of your executions are open already.`,
);

/** The events of an execution, from the beginning or from after one that was heard, up to the one that ends it. */
export async function streamExecutionEvents(
  ctx: Context,
  caller: Member,
  executionId: string,
  lastEventId: string | null,
  kinds: ExecutionKinds,
): Promise<EventStreamResponse> {
  const execution = await mustFindExecution(ctx, caller, executionId);
  const kind = required(kinds[execution.type], `the kind ${execution.type}`);
  if (!kind.isEventId(lastEventId))
    throw invalidRequest("Last-Event-ID", "is none of this execution's events");
  return new EventStreamResponse({
    name: executionId,
    onEnd: streams.acquire(caller.userId),
    // A reader of another process's run, too, goes on at another one.
    endSignal: ctx.feed.closed,
    events: (signal) => kind.streamEvents(ctx, execution, lastEventId, signal),
  });
}

/** Whether it is a run under way whose request is answered with a stream: anybody may read along before its first word. */
export async function isStreaming(ctx: Context, caller: Member, executionId: string): Promise<boolean> {
  const { mode, completedAt } = await mustFindExecution(ctx, caller, executionId);
  return mode === "stream" && completedAt === null;
}
