import type { Context } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { EventStreamResponse, type StreamedEvent } from "../../platform/http/route.ts";
import type { EndEvent, LiveRun } from "./live-runs.ts";
import type { RunResult } from "./run-prompt.ts";
import type { PromptRun } from "./run-record.ts";

/** The id of the last event: a reader with this id has all events. */
const END = "end";

/** The stream ends only with its run: a shutdown aborts the run, which sends its last event. */
const never = new AbortController().signal;

/**
 * Streams a run of this process. Waits a while for the first output, so that an earlier error can be the response. `clientGone`
 * aborts the run; the provider's response is read no faster than the client reads.
 */
export async function streamRun(
  ctx: Context,
  run: PromptRun,
  result: Promise<RunResult>,
  clientGone: AbortSignal | null,
): Promise<EventStreamResponse> {
  const { live } = run;
  if (clientGone) live.enableBackpressure();
  if (!live.hasStarted) await waitForStart(live, ctx.liveRuns.opensAfterMs);
  if (live.endEvent && live.text.length === 0) {
    const ended = await result;
    if ("error" in ended) throw ended.error;
  }
  return new EventStreamResponse({
    name: toId("exec", run.id),
    endSignal: never,
    // Also for a client that stops reading. After the end event it has no effect.
    onEnd: () => clientGone && live.abort("client_gone"),
    events: (signal) => streamLiveEvents(live, 0, signal, (offset) => live.onRead(offset)),
  });
}

/** Waits no longer than `ms`, because proxies close connections that are silent for longer. */
async function waitForStart(live: LiveRun, ms: number): Promise<void> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), ms);
  await live.waitForChange(late.signal);
  // The timer of AbortSignal.timeout() could not be stopped, and would hold memory for the rest of the time.
  clearTimeout(timer);
}

/** The events after `offset` units of output, up to the end. */
export async function* streamLiveEvents(
  live: LiveRun,
  offset: number,
  signal: AbortSignal,
  read: (offset: number) => void = () => {},
): AsyncGenerator<StreamedEvent> {
  live.retain();
  let wake = () => {};
  // One listener for the whole stream: adding one for each event creates garbage.
  const stop = live.addListener(signal, () => wake());
  try {
    if (offset === 0) yield toStartedEvent(live.id);
    while (!signal.aborted) {
      read(offset);
      const piece = live.text.after(offset, live.endEvent !== null);
      offset += piece.length;
      if (piece !== "") yield toDeltaEvent(piece, offset);
      else if (live.endEvent) return yield toStreamedEnd(live.endEvent);
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  } finally {
    stop();
    live.release();
  }
}

export const toStartedEvent = (id: string): StreamedEvent => ({
  id: "0",
  type: "execution.started",
  data: JSON.stringify({ executionId: toId("exec", id) }),
});

export const toDeltaEvent = (text: string, offset: number): StreamedEvent => ({
  id: String(offset),
  type: "output.delta",
  data: JSON.stringify({ text }),
});

export const toStreamedEnd = ({ type, data }: EndEvent): StreamedEvent => ({
  id: END,
  type,
  data: JSON.stringify(data),
});

/** The length of the output up to the event with this id; null: the id is invalid. */
export function parseOffset(lastEventId: string | null): number | null {
  if (lastEventId === null) return 0;
  if (lastEventId === END) return Number.POSITIVE_INFINITY;
  return /^\d{1,9}$/.test(lastEventId) ? Number(lastEventId) : null;
}
