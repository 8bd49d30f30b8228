import type { Context } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { EventStreamResponse, type StreamedEvent } from "../../platform/http/route.ts";
import type { Ending, LiveRun } from "./live-runs.ts";
import type { Outcome } from "./run-prompt.ts";
import type { Run } from "./run-record.ts";

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
  run: Run,
  outcome: Promise<Outcome>,
  clientGone: AbortSignal | null,
): Promise<EventStreamResponse> {
  const { live } = run;
  if (clientGone) live.keepPace();
  // A proxy between would take a longer silence for the end of the connection.
  if (!live.hasMoved) await live.moved(AbortSignal.timeout(ctx.live.opensAfterMs));
  if (live.ending && live.text.length === 0) {
    const ended = await outcome;
    if ("error" in ended) throw ended.error;
  }
  return new EventStreamResponse({
    name: toId("exec", run.id),
    endSignal: never,
    // Of a reader who takes nothing, too; one who heard all changes nothing any more.
    onEnd: () => clientGone && live.giveUp("client_gone"),
    events: (signal) => followLive(live, 0, signal, (place) => live.readTo(place)),
  });
}

/** From after so many units of output, up to the end. */
export async function* followLive(
  live: LiveRun,
  place: number,
  signal: AbortSignal,
  read: (place: number) => void = () => {},
): AsyncGenerator<StreamedEvent> {
  live.hold();
  try {
    if (place === 0) yield started(live.id);
    while (!signal.aborted) {
      read(place);
      const piece = live.text.after(place, live.ending !== null);
      place += piece.length;
      if (piece !== "") yield delta(piece, place);
      else if (live.ending) return yield ended(live.ending);
      else await live.moved(signal);
    }
  } finally {
    live.letGo();
  }
}

export const started = (id: string): StreamedEvent => ({
  id: "0",
  type: "execution.started",
  data: JSON.stringify({ executionId: toId("exec", id) }),
});

export const delta = (text: string, place: number): StreamedEvent => ({
  id: String(place),
  type: "output.delta",
  data: JSON.stringify({ text }),
});

export const ended = ({ type, data }: Ending): StreamedEvent => ({
  id: END,
  type,
  data: JSON.stringify(data),
});

/** How much of the output somebody has who heard an event last; null: no event has this id. */
export function placeOf(lastEventId: string | null): number | null {
  if (lastEventId === null) return 0;
  if (lastEventId === END) return Number.POSITIVE_INFINITY;
  return /^\d{1,9}$/.test(lastEventId) ? Number(lastEventId) : null;
}
