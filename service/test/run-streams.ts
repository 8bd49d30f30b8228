import assert from "node:assert/strict";
import { type Listener, listen } from "./event-stream.ts";
import type { Client } from "./market.ts";
import type { RunWish } from "./runs.ts";

/** A run that is read as it comes; on the sandbox, unless told otherwise. */
export const streams = (
  origin: string,
  { key }: Client,
  wish: RunWish,
  headers: Record<string, string> = {},
): Promise<Listener> =>
  listen(origin, key, "/v1/ai/execute", headers, {
    ...{ apiKeyId: "sandbox", variables: { topic: "rain" }, stream: true },
    ...wish,
  });

/** Somebody who reads along, or comes back. */
export const follows = (origin: string, { key }: Client, executionId: string, lastEventId?: string) =>
  listen(
    origin,
    key,
    `/v1/ai/executions/${executionId}/events`,
    lastEventId === undefined ? {} : { "last-event-id": lastEventId },
  );

export interface HeardRun {
  types: string[];
  text: string;
  /** Of the event that ended it. */
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects by asserting it
  end: any;
}

/** What a reader has heard so far. */
export function heardBy({ heard }: Pick<Listener, "heard">): HeardRun {
  const deltas = heard.filter(({ type }) => type === "output.delta").map(({ data }) => JSON.parse(data).text);
  const last = heard.at(-1);
  return {
    types: heard.map(({ type }) => type),
    text: deltas.join(""),
    end: last && /completed|failed/.test(last.type) ? JSON.parse(last.data) : undefined,
  };
}

/** All of a stream, which must end cleanly, and with its only terminal event. */
export async function allOf(listener: Listener): Promise<HeardRun> {
  assert.equal(listener.status, 200, listener.text);
  assert.equal(await listener.ended, true);
  const heard = heardBy(listener);
  assert.deepEqual(
    heard.types.filter((type) => /completed|failed/.test(type)),
    heard.types.slice(-1),
    "one event ends it",
  );
  return heard;
}

export const executionOf = ({ heard }: Pick<Listener, "heard">): string =>
  JSON.parse(heard[0]!.data).executionId;

/** Pieces that come when the test lets them. */
export function heldPieces() {
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
