import { useLayoutEffect, useRef } from "react";

interface RunKeys {
  run: () => void;
  /** Absent: nothing runs. */
  stop?: (() => void) | undefined;
}

const OVERLAYS = 'dialog[open], [role="dialog"], [role="menu"]';

/** Ctrl+Enter runs, Esc stops; not behind a dialog or an open menu. */
export function useRunKeys(keys: RunKeys): void {
  const latest = useRef(keys);
  latest.current = keys;
  useLayoutEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (document.querySelector(OVERLAYS)) return;
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        latest.current.run();
      }
      if (event.key === "Escape" && latest.current.stop) latest.current.stop();
    };
    // Before what is open closes itself by the same key.
    document.addEventListener("keydown", onKeyDown, { capture: true });
    return () => document.removeEventListener("keydown", onKeyDown, { capture: true });
  }, []);
}
