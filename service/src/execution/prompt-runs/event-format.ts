import { toId } from "../../core/ids.ts";
import type { StreamedEvent } from "../../platform/http/route.ts";
import type { EndEvent } from "./live-runs.ts";

/** The id of the last event: a reader with this id has all events. */
const END = "end";

export const toStartedEvent = (id: string): StreamedEvent => ({
  id: "0",
  type: "execution.started",
  data: JSON.stringify({ executionId: toId("exec", id) }),
});

export const toDeltaEvent = (text: string, offset: number): StreamedEvent => ({
  id: String(offset),
  type: "output.delta",
  data: JSON.stringify({ text }),
});

export const toStreamedEnd = ({ type, data }: EndEvent): StreamedEvent => ({
  id: END,
  type,
  data: JSON.stringify(data),
});

/** The length of the output up to the event with this id; null: the id is invalid. */
export function parseOffset(lastEventId: string | null): number | null {
  if (lastEventId === null) return 0;
  if (lastEventId === END) return Number.POSITIVE_INFINITY;
  return /^\d{1,9}$/.test(lastEventId) ? Number(lastEventId) : null;
}
