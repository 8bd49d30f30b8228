import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import { deleteIdentitiesOfUser, findIdentity, insertIdentity } from "./queries.ts";

/** Somebody as a provider of sign-in knows them. */
export interface Identity {
  provider: string;
  subject: string;
}

/** The account that an identity opens. */
export async function findUserIdOfIdentity(tx: Tx, { provider, subject }: Identity): Promise<string | null> {
  return (await findIdentity(tx, provider, subject))?.userId ?? null;
}

/** From now on the identity opens the account. */
export const linkIdentity = (ctx: Context, tx: Tx, { provider, subject }: Identity, userId: string) =>
  insertIdentity(tx, { provider, subject, user_id: userId, created_at: ctx.now() });

/** None opens the account any more. */
export async function unlinkIdentities(tx: Tx, userId: string): Promise<void> {
  await deleteIdentitiesOfUser(tx, userId);
}
