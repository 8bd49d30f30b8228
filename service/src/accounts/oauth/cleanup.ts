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

/** On account closed. Tokens are deleted with their grants and clients. */
export async function deleteGrantsAndClients(tx: Tx, userId: string): Promise<void> {
  await deleteTokensOfUser(tx, userId);
  await deleteGrantsOfUser(tx, userId);
  await deleteOwnClients(tx, userId);
}

/**
 * Ends everything that acts in the user's name. The user's clients stay, since other people use them, but need a new
 * secret.
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

/** Unused clients are self-registered, a month old and without any grant. */
export async function deleteExpiredOAuthData(ctx: Context): Promise<void> {
  const now = ctx.now().getTime();
  await deleteExpiredRows(ctx.db, { flows: new Date(now), tokens: new Date(now - DAY_MS) });
  await deleteUnusedClients(ctx.db, new Date(now - UNUSED_CLIENT_DAYS * DAY_MS));
}
