import { api } from "@stoa/contract";
import { route } from "../../platform/http/route.ts";
import { listOwnEvents, readEvent } from "./events.ts";
import { streamOwnEvents } from "./stream.ts";

export const eventRoutes = [
  route(api.events.list, (ctx, caller, { query }) => listOwnEvents(ctx, caller, query)),
  route(api.events.get, (ctx, caller, { params }) => readEvent(ctx, caller, params.eventId)),
  route(api.events.stream, (ctx, caller, { query }, { lastEventId }) =>
    // A browser that reconnects repeats the first URL, so the header is newer than the query.
    streamOwnEvents(ctx, caller, query.types ?? null, lastEventId ?? (query.lastEventId || null)),
  ),
];
