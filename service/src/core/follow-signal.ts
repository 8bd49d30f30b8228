/**
 * Aborts the controller when the signal aborts, with its reason, until the returned function is called. For signals of
 * one call: `AbortSignal.any` registers each of them for the garbage collector, which costs more than the listeners.
 */
export function followSignal(controller: AbortController, signal: AbortSignal): () => void {
  const abort = () => controller.abort(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort);
  return () => signal.removeEventListener("abort", abort);
}
