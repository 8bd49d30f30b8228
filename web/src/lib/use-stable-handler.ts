import { useCallback, useRef } from "react";

/** Calls the handler of the last render, but stays the same function: a new one would render each part that has it. */
export function useStableHandler<Args extends unknown[]>(
  handler: (...args: Args) => void,
): (...args: Args) => void {
  const newest = useRef(handler);
  newest.current = handler;
  return useCallback((...args: Args) => newest.current(...args), []);
}
