import type { Context } from "../../core/context.ts";
import { deleteOldSessions } from "../sessions/sessions.ts";
import { LONGEST_WINDOW_SECONDS } from "./attempts.ts";
import { deleteAttemptsBefore, deleteTokensBefore } from "./queries.ts";

export async function deleteExpiredSignInData(ctx: Context): Promise<void> {
  const now = ctx.now();
  await deleteTokensBefore(ctx.db, now);
  await deleteAttemptsBefore(ctx.db, new Date(now.getTime() - LONGEST_WINDOW_SECONDS * 1000));
  await deleteOldSessions(ctx);
}
