import { api } from "@stoa/contract";
import { route } from "../http/route.ts";
import { listOwnEvents, readEvent } from "./events.ts";

export const eventRoutes = [
  route(api.events.list, (ctx, caller, { query }) => listOwnEvents(ctx, caller, query)),
  route(api.events.get, (ctx, caller, { params }) => readEvent(ctx, caller, params.eventId)),
];
