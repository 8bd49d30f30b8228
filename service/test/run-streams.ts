import assert from "node:assert/strict";
import { type EventReader, openEventStream } from "./event-stream.ts";
import type { Client } from "./market.ts";
import type { RunInput } from "./runs.ts";

/** A run that is read as it comes; on the sandbox, unless told otherwise. */
export const streamRun = (
  origin: string,
  { key }: Client,
  wish: RunInput,
  headers: Record<string, string> = {},
): Promise<EventReader> =>
  openEventStream(origin, key, "/v1/ai/execute", headers, {
    ...{ apiKeyId: "sandbox", variables: { topic: "rain" }, stream: true },
    ...wish,
  });

/** Somebody who reads along, or comes back. */
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
  /** Of the event that ended it. */
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects by asserting it
  end: any;
}

/** What a reader has heard so far. */
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

/** All of a stream, which must end cleanly, and with its only terminal event. */
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

/** Pieces that come when the test lets them. */
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
    /** Lets so many come in all. */
    allow,
    allowAll: () => allow(Number.POSITIVE_INFINITY),
  };
}
