import { queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";
import { UNREAD } from "../first-requests.ts";

const MINUTE_MS = 60_000;

/** How many notifications are unread: `meta.unreadCount`. */
export const unreadQuery = queryOptions({
  queryKey: ["notifications", "unread"],
  queryFn: ({ signal }) => stoa.notifications.list(UNREAD, { signal }).page(),
  staleTime: MINUTE_MS,
  refetchInterval: MINUTE_MS,
});
