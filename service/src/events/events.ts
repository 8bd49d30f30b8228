import type { Context, Member } from "../context.ts";
import { daysAfter } from "../days.ts";
import { mapPage, type Paging } from "../db/paging.ts";
import { ApiError } from "../errors.ts";
import { RawJson } from "../http/route.ts";
import { toUuid } from "../ids.ts";
import { deleteEventsBefore, findEvent, listEvents } from "./queries.ts";

export const EVENTS_KEPT_DAYS = 30;
const FORGOTTEN_AT_ONCE = 500;

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

/** With their deliveries; some at a time, so that nobody who delivers waits for a lock for long. */
export async function forgetOldEvents(ctx: Context): Promise<void> {
  const before = daysAfter(ctx.now(), -EVENTS_KEPT_DAYS);
  while ((await deleteEventsBefore(ctx.db, before, FORGOTTEN_AT_ONCE)) > 0);
}
