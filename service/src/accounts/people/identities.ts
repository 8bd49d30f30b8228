import type { Context } from "../../core/context.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import {
  deleteIdentitiesOfProvider,
  deleteIdentitiesOfUser,
  findIdentity,
  insertIdentity,
  listIdentities,
} from "./queries.ts";

/** A user at GitHub or Google. */
export interface Identity {
  provider: string;
  subject: string;
}

export async function findUserIdOfIdentity(tx: Tx, { provider, subject }: Identity): Promise<string | null> {
  return (await findIdentity(tx, provider, subject))?.userId ?? null;
}

export const linkIdentity = (ctx: Context, tx: Tx, { provider, subject }: Identity, userId: string) =>
  insertIdentity(tx, { provider, subject, userId, createdAt: ctx.now() });

/** Since when each linked provider signs the account in. */
export async function listLinkedProviders(db: Queries, userId: string): Promise<Map<string, Date>> {
  const rows = await listIdentities(db, userId);
  return new Map(rows.map(({ provider, linkedAt }) => [provider, linkedAt]));
}

/** Returns false if the provider was not linked. */
export async function unlinkProvider(tx: Tx, userId: string, provider: string): Promise<boolean> {
  return (await deleteIdentitiesOfProvider(tx, userId, provider)).length > 0;
}

export async function unlinkIdentities(tx: Tx, userId: string): Promise<void> {
  await deleteIdentitiesOfUser(tx, userId);
}
