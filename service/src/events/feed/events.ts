import type { Context, Member } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { ApiError } from "../../core/errors.ts";
import { toUuid } from "../../core/ids.ts";
import { mapPage, type Paging } from "../../platform/db/paging.ts";
import { RawJson } from "../../platform/http/route.ts";
import { deleteEventsBefore, findEvent, listEvents } from "../outbox/queries.ts";

export const EVENT_RETENTION_DAYS = 30;
const DELETE_BATCH_SIZE = 500;

export async function listOwnEvents(
  ctx: Context,
  caller: Member,
  query: Paging & { type?: string | undefined },
) {
  return mapPage(await listEvents(ctx.db, caller.userId, query), (body) => new RawJson(body));
}

export async function readEvent(ctx: Context, caller: Member, eventId: string) {
  const id = toUuid("evt", eventId);
  const event = id ? await findEvent(ctx.db, caller.userId, id) : undefined;
  if (!event) throw new ApiError("EVENT_NOT_FOUND");
  return JSON.parse(event.body);
}

/** Deletes in batches, with the deliveries, so that no delivery worker waits long for a lock. */
export async function deleteOldEvents(ctx: Context): Promise<void> {
  const before = daysAfter(ctx.now(), -EVENT_RETENTION_DAYS);
  while ((await deleteEventsBefore(ctx.db, before, DELETE_BATCH_SIZE)) > 0);
}
