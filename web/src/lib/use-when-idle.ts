import { useEffect } from "react";

/** For browsers that do not tell when they are idle (Safari). */
const LATER_MS = 500;

/** Runs once after the page is shown, when the browser has nothing else to do. Not where people save data. */
export function useWhenIdle(action: () => void): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: once
  useEffect(() => {
    const { connection } = navigator as Navigator & { connection?: { saveData?: boolean } };
    if (connection?.saveData) return;
    if (!("requestIdleCallback" in globalThis)) {
      const timer = setTimeout(action, LATER_MS);
      return () => clearTimeout(timer);
    }
    const request = requestIdleCallback(action);
    return () => cancelIdleCallback(request);
  }, []);
}
