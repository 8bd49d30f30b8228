import { followSignal } from "../../core/follow-signal.ts";
import type { AiProviders, ProviderAnswer, ProviderCall } from "./ai-provider.ts";

/**
 * Turns the callback of `stream` into an async generator of pieces that returns the answer. Throws what `stream` throws. Stopping early
 * aborts the call.
 */
export async function* readPieces(
  providers: Pick<AiProviders, "stream">,
  call: ProviderCall,
): AsyncGenerator<string, ProviderAnswer, undefined> {
  const stop = new AbortController();
  const unfollow = followSignal(stop, call.signal);
  const pieces: string[] = [];
  let hasEnded = false;
  let wake = () => {};
  let readOn = () => {};
  const answer = providers.stream({ ...call, signal: stop.signal }, (piece) => {
    if (stop.signal.aborted) return undefined;
    pieces.push(piece);
    wake();
    return new Promise((resolve) => {
      readOn = resolve;
    });
  });
  const onEnd = () => {
    hasEnded = true;
    wake();
  };
  const ended = answer.then(onEnd, onEnd);
  stop.signal.addEventListener("abort", () => readOn());
  try {
    for (;;) {
      for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) yield piece;
      if (hasEnded) return await answer;
      readOn();
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  } finally {
    stop.abort();
    unfollow();
    await ended;
  }
}
