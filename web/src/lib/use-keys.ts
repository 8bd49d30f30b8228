import { useKeyDown } from "./use-key-down.ts";

const isInField = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable ||
    target.matches("input, textarea, select") ||
    target.closest("dialog") !== null);

/** Whether a dialog, a menu or a popover has the keys. */
const isCovered = (): boolean => document.querySelector("dialog[open], [role=dialog], [role=menu]") !== null;

/** Shortcuts of a page by key. They never work inside fields and dialogs. */
export function useKeys(actions: Record<string, () => void>): void {
  useKeyDown((event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isInField(event.target) || isCovered()) return;
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}

/** `j` and `k` move the focus over the links of a list that have `data-row`; Enter opens one. */
export function useListKeys(): void {
  const move = (by: 1 | -1) => {
    const links = [...document.querySelectorAll<HTMLElement>("[data-row]")];
    const focused = links.indexOf(document.activeElement as HTMLElement);
    const open = links.findIndex((link) => link.getAttribute("aria-current") !== null);
    const from = focused === -1 ? open : focused;
    const next = from === -1 ? (by === 1 ? 0 : links.length - 1) : from + by;
    links[Math.min(Math.max(next, 0), links.length - 1)]?.focus();
  };
  useKeys({ j: () => move(1), k: () => move(-1) });
}
