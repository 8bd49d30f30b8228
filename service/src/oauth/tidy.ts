import type { Context } from "../context.ts";
import { deleteUnusedClients } from "./queries.ts";
import { deleteWhatIsOver } from "./token-queries.ts";

const DAY_MS = 86_400_000;
const UNUSED_CLIENT_DAYS = 30;

/** Forgets what expired, and clients that registered themselves a month ago and that nobody allows anything. */
export async function tidyOAuth(ctx: Context): Promise<void> {
  const now = ctx.now().getTime();
  await deleteWhatIsOver(ctx.db, { flows: new Date(now), tokens: new Date(now - DAY_MS) });
  await deleteUnusedClients(ctx.db, new Date(now - UNUSED_CLIENT_DAYS * DAY_MS));
}
