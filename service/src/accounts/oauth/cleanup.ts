import type { Context } from "../../core/context.ts";
import { DAY_MS } from "../../core/dates.ts";
import type { Tx } from "../../platform/db/database.ts";
import {
  deleteGrantsOfUser,
  deleteOwnClients,
  deleteUnusedClients,
  invalidateSecretsOfUser,
} from "./queries.ts";
import { deleteExpiredRows, deleteTokensOfUser } from "./token-queries.ts";

const UNUSED_CLIENT_DAYS = 30;

/** Whoever leaves takes along what they allowed, and the clients that were theirs, with every token of both. */
export async function deleteGrantsAndClients(tx: Tx, userId: string): Promise<void> {
  await deleteTokensOfUser(tx, userId);
  await deleteGrantsOfUser(tx, userId);
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
  await deleteTokensOfUser(tx, userId);
  const grants = await deleteGrantsOfUser(tx, userId);
  const secrets = await invalidateSecretsOfUser(tx, userId);
  return { grantsRevoked: grants.length, clientSecretsRevoked: secrets.length };
}

/** What expired, and clients that registered themselves a month ago and that nobody allows anything. */
export async function deleteExpiredOAuthData(ctx: Context): Promise<void> {
  const now = ctx.now().getTime();
  await deleteExpiredRows(ctx.db, { flows: new Date(now), tokens: new Date(now - DAY_MS) });
  await deleteUnusedClients(ctx.db, new Date(now - UNUSED_CLIENT_DAYS * DAY_MS));
}
