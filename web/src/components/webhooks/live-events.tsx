import "./live-events.css";
import type { AccountEvent, AccountEventType, Event } from "@stoa/sdk";
import { useEffect, useState } from "react";
import { stoa } from "../../api.ts";

/** Older ones leave the page; they are in the list of the API. */
const MAX_SHOWN = 500;
/** Before the oldest stored event. */
const START = "evt_00000000000000000000000000";

export type ShownEvent = Event | AccountEvent;

type StreamState = "live" | "reconnecting" | "paused" | "failed";

/** Appends the stream to the first page: after its newest event, so that none is missed and none comes twice. A pause closes the stream. */
export function useLiveEvents(first: Event[], type: string | undefined) {
  const [events, setEvents] = useState<ShownEvent[]>(first);
  const [state, setState] = useState<StreamState>("live");
  const [error, setError] = useState<unknown>(null);
  const [attempt, setAttempt] = useState(0);
  const isOpen = state === "live" || state === "reconnecting";
  // biome-ignore lint/correctness/useExhaustiveDependencies: each event would open the stream anew
  useEffect(() => {
    if (!isOpen) return;
    const closing = new AbortController();
    const listen = async () => {
      const newest = events[0]?.id ?? START;
      const stream = stoa.events.listen({
        ...{ after: newest, types: type === undefined ? undefined : [type as AccountEventType] },
        signal: closing.signal,
        // Also called for the end by a pause.
        onReconnect: () => {
          if (!closing.signal.aborted) setState("reconnecting");
        },
      });
      for await (const event of stream) {
        if (closing.signal.aborted) return;
        setState("live");
        setEvents((old) =>
          old.some(({ id }) => id === event.id) ? old : [event, ...old].slice(0, MAX_SHOWN),
        );
      }
    };
    listen().catch((failure: unknown) => {
      if (closing.signal.aborted) return;
      setError(failure);
      setState("failed");
    });
    return () => closing.abort();
  }, [isOpen, type, attempt]);
  return {
    ...{ events, state, error },
    setLive: (isLive: boolean) => {
      setError(null);
      setState(isLive ? "live" : "paused");
    },
    retry: () => {
      setError(null);
      setState("live");
      setAttempt((old) => old + 1);
    },
  };
}

const STATE_TEXTS: Record<StreamState, string> = {
  live: "Live",
  reconnecting: "Connecting again",
  paused: "Paused",
  failed: "Not connected",
};

export const ConnectionState = ({ state }: { state: StreamState }) => (
  <span className="row sm soft connection" role="status">
    <i className={`dot ${state}`} aria-hidden="true" /> {STATE_TEXTS[state]}
  </span>
);

/** What tells one event of a type from another: a title, a comment, or an id. */
export function summaryOf(event: ShownEvent): string {
  const about: unknown = Object.values(event.data)[0];
  if (typeof about === "string") return about;
  if (typeof about !== "object" || about === null) return "";
  const { title, comment, id } = about as Record<string, unknown>;
  return [title, comment, id].find((text): text is string => typeof text === "string" && text !== "") ?? "";
}
