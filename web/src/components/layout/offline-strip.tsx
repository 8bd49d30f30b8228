import { onlineManager } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";

/** Queries wait while the browser is offline, and go on by themselves. */
export function OfflineStrip() {
  const isOnline = useSyncExternalStore(
    (listener) => onlineManager.subscribe(listener),
    () => onlineManager.isOnline(),
  );
  if (isOnline) return null;
  return (
    <p className="offline" role="status">
      You are offline. This page continues when the connection is back.
    </p>
  );
}
