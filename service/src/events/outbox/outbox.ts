import type { CallbackData, CallbackType, EventData, EventType } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { toId, toUuid } from "../../core/ids.ts";
import type { Tx } from "../../platform/db/database.ts";
import { sealedColumn } from "../../platform/db/sealed-columns.ts";
import { insertEvent, insertEvents, type NewEvent } from "./queries.ts";

/**
 * Inserts an event for the accounts in `to` (uuids) in the transaction of the change, and returns its uuid. The body
 * is serialised once: every delivery sends and signs the same bytes.
 */
export async function publishEvent<T extends EventType>(
  ctx: Context,
  tx: Tx,
  to: string[],
  type: T,
  data: EventData<T>,
): Promise<string> {
  return writeEvent(ctx, tx, to, type, data);
}

/** Inserts events of one type by one statement, each for the account of `to`. */
export async function publishEvents<T extends EventType>(
  ctx: Context,
  tx: Tx,
  type: T,
  events: { to: string; data: EventData<T> }[],
): Promise<void> {
  const createdAt = ctx.now();
  const rows = events.map(({ to, data }) => {
    const id = ctx.newId();
    const event = { id, type, sealedBody: null, executionId: null, createdAt };
    return { ...event, body: renderBody(event, data), recipient: to };
  });
  await insertEvents(tx, rows);
}

/**
 * Inserts an event of a run that no event list shows; the caller creates its delivery. The body that holds the run's
 * output is sealed. A second body without the output remains when the run is erased.
 */
export async function publishCallbackEvent(
  ctx: Context,
  tx: Tx,
  type: CallbackType,
  data: CallbackData,
): Promise<string> {
  const { execution } = data;
  const executionId = toUuid("exec", execution.id);
  if (execution.output === null || execution.output === undefined)
    return writeEvent(ctx, tx, [], type, data, { executionId });
  const erased = { execution: { ...execution, output: null } };
  return writeEvent(ctx, tx, [], type, erased, { executionId, fullData: data });
}

async function writeEvent(
  ctx: Context,
  tx: Tx,
  to: string[],
  type: string,
  data: object,
  { executionId = null, fullData }: { executionId?: string | null; fullData?: object } = {},
): Promise<string> {
  const id = ctx.newId();
  const createdAt = ctx.now();
  const bodyOf = (eventData: object) => renderBody({ id, type, createdAt }, eventData);
  const sealedBody = fullData ? ctx.vault.seal(bodyOf(fullData), sealContext(id)) : null;
  const event = { id, type, body: bodyOf(data), sealedBody, executionId, createdAt };
  await insertEvent(tx, event, [...new Set(to)]);
  return id;
}

const renderBody = ({ id, type, createdAt }: Pick<NewEvent, "id" | "type" | "createdAt">, data: object) =>
  JSON.stringify({ id: toId("evt", id), type, created: createdAt.toISOString(), data });

const sealContext = (eventId: string) => `event|${eventId}`;

export const sealedEvents = sealedColumn({
  table: "events",
  column: "sealed_body",
  key: { id: "uuid" },
  bound: { id: "t.id" },
  contextOf: ({ id }) => sealContext(id),
});

export interface StoredEventBody {
  eventId: string;
  body: string;
  sealedBody: string | null;
}

/** The body without the run's output when the run is erased or the seal cannot be opened. */
export function readEventBody(
  { vault, log }: Context,
  { eventId, body, sealedBody }: StoredEventBody,
): string {
  if (sealedBody === null) return body;
  try {
    return vault.open(sealedBody, sealContext(eventId));
  } catch (error) {
    log.error(
      { event: eventId, err: error },
      "the sealed output of an event cannot be opened; the event is sent without it",
    );
    return body;
  }
}
