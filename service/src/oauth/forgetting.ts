import type { Context } from "../context.ts";
import { DAY_MS } from "../days.ts";
import type { Tx } from "../db/database.ts";
import { deleteGrantsOf, deleteOwnClients, deleteUnusedClients } from "./queries.ts";
import { deleteTokensOf, deleteWhatIsOver } from "./token-queries.ts";

const UNUSED_CLIENT_DAYS = 30;

/** Whoever leaves takes along what they allowed, and the clients that were theirs, with every token of both. */
export async function forgetGrantsAndClients(tx: Tx, userId: string): Promise<void> {
  await deleteTokensOf(tx, userId);
  await deleteGrantsOf(tx, userId);
  await deleteOwnClients(tx, userId);
}

/** What expired, and clients that registered themselves a month ago and that nobody allows anything. */
export async function tidyOAuth(ctx: Context): Promise<void> {
  const now = ctx.now().getTime();
  await deleteWhatIsOver(ctx.db, { flows: new Date(now), tokens: new Date(now - DAY_MS) });
  await deleteUnusedClients(ctx.db, new Date(now - UNUSED_CLIENT_DAYS * DAY_MS));
}
