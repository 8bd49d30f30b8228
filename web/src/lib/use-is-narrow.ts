import { useSyncExternalStore } from "react";

const NARROW = window.matchMedia("(max-width: 767px)");

/** Whether the page has the layout of phones. */
export const useIsNarrow = (): boolean =>
  useSyncExternalStore(
    (listener) => {
      NARROW.addEventListener("change", listener);
      return () => NARROW.removeEventListener("change", listener);
    },
    () => NARROW.matches,
  );
