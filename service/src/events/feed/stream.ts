import type { EventType } from "@stoa/contract";
import { NIL } from "uuid";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { ConcurrencyLimit } from "../../platform/http/concurrency-limit.ts";
import { EventStreamResponse, type StreamedEvent } from "../../platform/http/route.ts";
import { EVENT_RETENTION_DAYS } from "./events.ts";
import { findLastPosition, findPosition, type StreamPosition } from "./feed-queries.ts";

const MAX_STREAMS = 10;
const streams = new ConcurrencyLimit(MAX_STREAMS, `${MAX_STREAMS} streams of yours are open already.`);

const START_POSITION: StreamPosition = { id: NIL, after: 0 };

export async function streamOwnEvents(
  ctx: Context,
  caller: Member,
  types: readonly EventType[] | null,
  lastEventId: string | null,
): Promise<EventStreamResponse> {
  const position = await readPosition(ctx, caller, lastEventId);
  return new EventStreamResponse({
    onEnd: streams.acquire(caller.userId),
    endSignal: ctx.feed.closed,
    events: (signal) => streamEvents(ctx, caller, types, position, signal),
  });
}

async function readPosition(
  ctx: Context,
  { userId }: Member,
  lastEventId: string | null,
): Promise<StreamPosition> {
  if (lastEventId === null) return (await findLastPosition(ctx.pool, userId)) ?? START_POSITION;
  const id = toUuid("evt", lastEventId);
  const position = id === NIL ? START_POSITION : id && (await findPosition(ctx.pool, userId, id));
  if (position) return position;
  throw new ApiError(
    "EVENT_NOT_FOUND",
    `No event of yours of the last ${EVENT_RETENTION_DAYS} days has this Last-Event-ID: reconnect without it, and read GET /v1/events for events that you may have missed.`,
  );
}

async function* streamEvents(
  ctx: Context,
  { userId }: Member,
  types: readonly EventType[] | null,
  position: StreamPosition,
  signal: AbortSignal,
): AsyncGenerator<StreamedEvent> {
  // Lets a client that loses the stream before the first event resume from its start.
  yield { id: toId("evt", position.id) };
  const reader = { userId, after: position.after, types };
  while (!signal.aborted) {
    for (const { id, type, body } of await ctx.feed.next(reader, signal)) {
      if (id !== position.id) yield { id: toId("evt", id), type, data: body! };
    }
  }
}
