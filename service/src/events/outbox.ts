import type { CallbackData, CallbackType, EventData, EventType } from "@stoa/contract";
import type { Context } from "../context.ts";
import type { Tx } from "../db/database.ts";
import { toId } from "../ids.ts";
import { insertEvent } from "./queries.ts";

/**
 * Writes an event for the accounts in `to` (uuids), in the transaction of the change that it tells of: it exists
 * if and only if the change does; its uuid is answered. The body is made once: every delivery sends and signs the same bytes.
 */
export async function announce<T extends EventType>(
  ctx: Context,
  tx: Tx,
  to: string[],
  type: T,
  data: EventData<T>,
): Promise<string> {
  return write(ctx, tx, to, type, data);
}

/** An event that is in nobody's list: whoever writes it says where it is delivered. */
export const announceApart = (
  ctx: Context,
  tx: Tx,
  type: CallbackType,
  data: CallbackData,
): Promise<string> => write(ctx, tx, [], type, data);

async function write(ctx: Context, tx: Tx, to: string[], type: string, data: object): Promise<string> {
  const id = ctx.newId();
  const now = ctx.now();
  const body = JSON.stringify({ id: toId("evt", id), type, created: now.toISOString(), data });
  await insertEvent(tx, { id, type, body, created_at: now }, [...new Set(to)]);
  return id;
}
