import assert from "node:assert/strict";
import { type EventReader, openEventStream } from "./event-stream.ts";
import type { Client } from "./market.ts";
import type { RunInput } from "./runs.ts";

/** A streamed run, by default in the sandbox. */
export const streamRun = (
  origin: string,
  { key }: Client,
  input: RunInput,
  headers: Record<string, string> = {},
): Promise<EventReader> =>
  openEventStream(origin, key, "/v1/ai/execute", headers, {
    ...{ apiKeyId: "sandbox", variables: { topic: "rain" }, stream: true },
    ...input,
  });

/** Reads the events of a run, also after a disconnect. */
export const followRun = (origin: string, { key }: Client, executionId: string, lastEventId?: string) =>
  openEventStream(
    origin,
    key,
    `/v1/ai/executions/${executionId}/events`,
    lastEventId === undefined ? {} : { "last-event-id": lastEventId },
  );

export interface StreamedRun {
  types: string[];
  text: string;
  /** The data of the terminal event. */
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects by asserting it
  end: any;
}

/** What the reader has received so far. */
export function streamedRunOf({ events }: Pick<EventReader, "events">): StreamedRun {
  const deltas = events
    .filter(({ type }) => type === "output.delta")
    .map(({ data }) => JSON.parse(data).text);
  const last = events.at(-1);
  return {
    types: events.map(({ type }) => type),
    text: deltas.join(""),
    end: last && /completed|failed/.test(last.type) ? JSON.parse(last.data) : undefined,
  };
}

/** Reads the whole stream and asserts a clean end with one terminal event. */
export async function readWholeStream(listener: EventReader): Promise<StreamedRun> {
  assert.equal(listener.status, 200, listener.text);
  assert.equal(await listener.ended, true);
  const events = streamedRunOf(listener);
  assert.deepEqual(
    events.types.filter((type) => /completed|failed/.test(type)),
    events.types.slice(-1),
    "one event ends it",
  );
  return events;
}

export const executionOf = ({ events }: Pick<EventReader, "events">): string =>
  JSON.parse(events[0]!.data).executionId;

/** Pieces that the test releases. */
export function gatedPieces() {
  let allowed = 0;
  let wake = Promise.withResolvers<void>();
  const allow = (count: number) => {
    allowed = count;
    wake.resolve();
    wake = Promise.withResolvers();
  };
  return {
    gate: async (piece: number) => {
      while (piece >= allowed) await wake.promise;
    },
    /** Releases this many pieces in all. */
    allow,
    allowAll: () => allow(Number.POSITIVE_INFINITY),
  };
}
