import type { Context } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { EventStreamResponse } from "../../platform/http/route.ts";
import { LiveEvents } from "./live-events.ts";
import type { LiveRun } from "./live-runs.ts";
import type { RunResult } from "./run-prompt.ts";
import type { PromptRun } from "./run-record.ts";

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
    events: (signal) => new LiveEvents(live, { offset: 0, signal, onRead: (offset) => live.onRead(offset) }),
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
