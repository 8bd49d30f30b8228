import type { Notifications } from "../../platform/db/notifications.ts";
import { RowCache } from "../../platform/db/row-cache.ts";
import type { KeyRow } from "./queries.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** API keys cached in the memory of this process, by their lookup. */
    keyCache: RowCache<KeyRow>;
  }
}

export const createKeyCache = (notifications: Pick<Notifications, "areCurrent" | "register">) =>
  new RowCache<KeyRow>(notifications, {
    key: "api_key_changed",
    dependencies: { user_changed: (row, userId) => row.userId === userId },
  });
