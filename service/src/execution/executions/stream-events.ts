import type { Context, Member } from "../../core/context.ts";
import { invalidRequest } from "../../core/errors.ts";
import { ConcurrencyLimit } from "../../platform/http/concurrency-limit.ts";
import { EventStreamResponse } from "../../platform/http/route.ts";
import { mustFindExecution } from "./executions.ts";

const MAX_STREAMS = 100;
const streams = new ConcurrencyLimit(
  MAX_STREAMS,
  `${MAX_STREAMS} streams of your executions are open already.`,
);

/** The events of an execution after `lastEventId` (null: from the beginning), up to the one that ends it. */
export async function streamExecutionEvents(
  ctx: Context,
  caller: Member,
  executionId: string,
  lastEventId: string | null,
): Promise<EventStreamResponse> {
  const execution = await mustFindExecution(ctx, caller, executionId);
  const kind = ctx.executionKinds[execution.type];
  if (!kind.isEventId(lastEventId))
    throw invalidRequest("Last-Event-ID", "is none of this execution's events");
  return new EventStreamResponse({
    name: executionId,
    onEnd: streams.acquire(caller.userId),
    // At shutdown the client reconnects to another process, whichever process runs the execution.
    endSignal: ctx.feed.closed,
    events: (signal) => kind.streamEvents(ctx, execution, lastEventId, signal),
  });
}

/** Whether the execution runs now and its request gets a stream, which a repeated request may join before the first event. */
export async function isStreaming(ctx: Context, caller: Member, executionId: string): Promise<boolean> {
  const { mode, completedAt } = await mustFindExecution(ctx, caller, executionId);
  return mode === "stream" && completedAt === null;
}
