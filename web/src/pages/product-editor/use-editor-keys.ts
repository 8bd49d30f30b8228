import { useKeyDown } from "../../lib/use-key-down.ts";
import type { DraftStore } from "./draft-store.ts";

/** Ctrl S saves, Ctrl Z and Shift Ctrl Z undo and redo changes of all fields, also where the browser has an own undo. */
export function useEditorKeys(store: DraftStore): void {
  const onKeyDown = (event: KeyboardEvent) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
    if (document.querySelector("dialog[open]")) return;
    const isElsewhere =
      event.target instanceof HTMLElement && event.target.closest("[data-own-undo], header.top") !== null;
    const key = event.key.toLowerCase();
    const actions: Record<string, () => void> = {
      s: () => void store.saveNow(),
      ...(!isElsewhere && {
        z: () => (event.shiftKey ? store.redo() : store.undo()),
        y: () => store.redo(),
      }),
    };
    const action = actions[key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  };
  // Before the text editor, which has an own idea of these keys.
  useKeyDown(onKeyDown, { capture: true });
}
