import type { Context } from "../../core/context.ts";
import { DAY_MS } from "../../core/dates.ts";
import type { Tx } from "../../platform/db/database.ts";
import { deleteGrantsOf, deleteOwnClients, deleteUnusedClients, voidSecretsOf } from "./queries.ts";
import { deleteTokensOf, deleteWhatIsOver } from "./token-queries.ts";

const UNUSED_CLIENT_DAYS = 30;

/** Whoever leaves takes along what they allowed, and the clients that were theirs, with every token of both. */
export async function forgetGrantsAndClients(tx: Tx, userId: string): Promise<void> {
  await deleteTokensOf(tx, userId);
  await deleteGrantsOf(tx, userId);
  await deleteOwnClients(tx, userId);
}

/**
 * Ends what acts in somebody's name: the grants that they gave, with every token, and the secrets of their own clients,
 * which stay for the people who use them and get a new secret from their owner.
 */
export async function revokeGrantsAndSecrets(
  tx: Tx,
  userId: string,
): Promise<{ grantsRevoked: number; clientSecretsRevoked: number }> {
  await deleteTokensOf(tx, userId);
  const grants = await deleteGrantsOf(tx, userId);
  const secrets = await voidSecretsOf(tx, userId);
  return { grantsRevoked: grants.length, clientSecretsRevoked: secrets.length };
}

/** What expired, and clients that registered themselves a month ago and that nobody allows anything. */
export async function tidyOAuth(ctx: Context): Promise<void> {
  const now = ctx.now().getTime();
  await deleteWhatIsOver(ctx.db, { flows: new Date(now), tokens: new Date(now - DAY_MS) });
  await deleteUnusedClients(ctx.db, new Date(now - UNUSED_CLIENT_DAYS * DAY_MS));
}
