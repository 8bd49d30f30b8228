import type { Notifications } from "../../platform/db/notifications.ts";
import { RowCache } from "../../platform/db/row-cache.ts";
import type { SessionRow } from "./queries.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** Sessions cached in the memory of this process, by their id. */
    sessionCache: RowCache<SessionRow>;
  }
}

/** A row also has the role and the plan of the viewed account. */
export const createSessionCache = (notifications: Pick<Notifications, "areCurrent" | "register">) =>
  new RowCache<SessionRow>(notifications, {
    key: "session_changed",
    dependencies: {
      user_changed: (row, userId) => row.userId === userId || row.viewedId === userId,
    },
  });
