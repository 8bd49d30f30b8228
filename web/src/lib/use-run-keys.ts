import { useKeyDown } from "./use-key-down.ts";

interface RunKeys {
  run: () => void;
  /** Absent: nothing runs. */
  stop?: (() => void) | undefined;
}

const OVERLAYS = 'dialog[open], [role="dialog"], [role="menu"]';

/** Ctrl+Enter runs, Esc stops; not behind a dialog or an open menu. */
export function useRunKeys({ run, stop }: RunKeys): void {
  const onKeyDown = (event: KeyboardEvent) => {
    if (document.querySelector(OVERLAYS)) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run();
    }
    if (event.key === "Escape") stop?.();
  };
  // Before what is open closes itself by the same key.
  useKeyDown(onKeyDown, { capture: true });
}
