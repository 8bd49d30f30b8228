import type { Tx } from "../db/database.ts";
import { deleteGrantsOf, deleteOwnClients } from "./queries.ts";
import { deleteTokensOf } from "./token-queries.ts";

/** Whoever leaves takes along what they allowed, and the clients that were theirs, with every token of both. */
export async function forgetGrantsAndClients(tx: Tx, userId: string): Promise<void> {
  await deleteTokensOf(tx, userId);
  await deleteGrantsOf(tx, userId);
  await deleteOwnClients(tx, userId);
}
