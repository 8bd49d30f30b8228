import type { Context } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { EventStreamResponse, type StreamedEvent } from "../../platform/http/route.ts";
import type { EndEvent, LiveRun } from "./live-runs.ts";
import type { RunResult } from "./run-prompt.ts";
import type { PromptRun } from "./run-record.ts";

/** The id of the event that ends a stream: whoever heard it heard all. */
const END = "end";

/** Ends with the run alone: a service that ends gives its runs up, and their readers hear so. */
const never = new AbortController().signal;

/**
 * The run as it is carried out. The answer waits for its first words, but not for long: what fails before is thrown. With a
 * caller that can go away it ends when they do, and is read of its provider no faster than they take it.
 */
export async function streamRun(
  ctx: Context,
  run: PromptRun,
  result: Promise<RunResult>,
  clientGone: AbortSignal | null,
): Promise<EventStreamResponse> {
  const { live } = run;
  if (clientGone) live.enableBackpressure();
  // A proxy between would take a longer silence for the end of the connection.
  if (!live.hasStarted) await live.waitForChange(AbortSignal.timeout(ctx.liveRuns.opensAfterMs));
  if (live.endEvent && live.text.length === 0) {
    const ended = await result;
    if ("error" in ended) throw ended.error;
  }
  return new EventStreamResponse({
    name: toId("exec", run.id),
    endSignal: never,
    // Of a reader who takes nothing, too; one who heard all changes nothing any more.
    onEnd: () => clientGone && live.abort("client_gone"),
    events: (signal) => streamLiveEvents(live, 0, signal, (place) => live.onRead(place)),
  });
}

/** From after so many units of output, up to the end. */
export async function* streamLiveEvents(
  live: LiveRun,
  place: number,
  signal: AbortSignal,
  read: (place: number) => void = () => {},
): AsyncGenerator<StreamedEvent> {
  live.retain();
  try {
    if (place === 0) yield toStartedEvent(live.id);
    while (!signal.aborted) {
      read(place);
      const piece = live.text.after(place, live.endEvent !== null);
      place += piece.length;
      if (piece !== "") yield toDeltaEvent(piece, place);
      else if (live.endEvent) return yield toStreamedEnd(live.endEvent);
      else await live.waitForChange(signal);
    }
  } finally {
    live.release();
  }
}

export const toStartedEvent = (id: string): StreamedEvent => ({
  id: "0",
  type: "execution.started",
  data: JSON.stringify({ executionId: toId("exec", id) }),
});

export const toDeltaEvent = (text: string, place: number): StreamedEvent => ({
  id: String(place),
  type: "output.delta",
  data: JSON.stringify({ text }),
});

export const toStreamedEnd = ({ type, data }: EndEvent): StreamedEvent => ({
  id: END,
  type,
  data: JSON.stringify(data),
});

/** How much of the output somebody has who heard an event last; null: no event has this id. */
export function parseOffset(lastEventId: string | null): number | null {
  if (lastEventId === null) return 0;
  if (lastEventId === END) return Number.POSITIVE_INFINITY;
  return /^\d{1,9}$/.test(lastEventId) ? Number(lastEventId) : null;
}
