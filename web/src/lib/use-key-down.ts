import { useLayoutEffect, useRef } from "react";

/**
 * Calls the listener for each key, from the first frame of the page on; a passive effect would miss keys before it runs.
 * `capture`: before the focused element and what is open handle the key.
 */
export function useKeyDown(listener: (event: KeyboardEvent) => void, { capture = false } = {}): void {
  const latest = useRef(listener);
  latest.current = listener;
  useLayoutEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => latest.current(event);
    document.addEventListener("keydown", onKeyDown, { capture });
    return () => document.removeEventListener("keydown", onKeyDown, { capture });
  }, [capture]);
}
