import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import { deleteIdentitiesOfUser, findIdentity, insertIdentity } from "./queries.ts";

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

export async function unlinkIdentities(tx: Tx, userId: string): Promise<void> {
  await deleteIdentitiesOfUser(tx, userId);
}
