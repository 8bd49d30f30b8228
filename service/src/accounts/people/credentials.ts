import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import { insertUserIfNew, updateEmailVerified, updatePassword } from "./queries.ts";

export { findSignInAccount, findSignInAccountByEmail, lockSignInAccount } from "./queries.ts";

/** An account that may enter, with what its password is judged by: for sign-in alone, never for an answer. */
export interface SignInAccount {
  id: string;
  email: string;
  name: string;
  /** When somebody proved to read its mailbox. */
  emailVerifiedAt: Date | null;
  passwordHash: string | null;
}

export interface VerifiedRegistration {
  email: string;
  /** null: a neutral one until the person chooses. */
  name: string | null;
  passwordHash: string | null;
}

/** Makes the account of a mailbox that was proven just now; false when it has one already. */
export function createVerifiedAccount(
  ctx: Context,
  tx: Tx,
  { email, name, passwordHash }: VerifiedRegistration,
) {
  const id = ctx.newId();
  return insertUserIfNew(tx, {
    id,
    email,
    name: name ?? defaultName(id),
    bio: "",
    role: "user",
    plan: "free",
    mailbox_proven_at: ctx.now(),
    verified: false,
    password_hash: passwordHash,
    demo: false,
    created_at: ctx.now(),
  });
}

/** Shown beside products and reviews, so it holds no part of the address. The end of a UUIDv7 is random. */
const defaultName = (id: string) => `Member ${id.slice(-6)}`;

/** Notes the first proof of a mailbox; whoever set a password before it may be somebody else, so that is gone. */
export async function markEmailVerified(ctx: Context, tx: Tx, userId: string): Promise<boolean> {
  return (await updateEmailVerified(tx, userId, ctx.now())) !== undefined;
}

export async function setPassword(tx: Tx, userId: string, passwordHash: string): Promise<void> {
  await updatePassword(tx, userId, passwordHash);
}
