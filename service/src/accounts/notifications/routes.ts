import { api } from "@stoa/contract";
import { repeatableRoute, route, withoutCacheChange } from "../../platform/http/route.ts";
import { listOwnNotifications, markRead } from "./notifications.ts";
import { changePreferences, readPreferences } from "./preferences.ts";

export const notificationRoutes = [
  route(api.notifications.list, (ctx, caller, { query }) => listOwnNotifications(ctx, caller, query)),
  withoutCacheChange(
    repeatableRoute(
      "read notifications stay read",
      route(api.notifications.read, (ctx, caller, { body }) => markRead(ctx, caller, body)),
    ),
  ),
  route(api.account.notifications.get, (ctx, caller) => readPreferences(ctx, caller)),
  withoutCacheChange(
    route(api.account.notifications.update, (ctx, caller, { body }, { ifMatch }) =>
      changePreferences(ctx, caller, body, ifMatch),
    ),
  ),
];
