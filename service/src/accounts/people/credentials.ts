import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import { insertUserIfNew, updateEmailVerified, updatePassword } from "./queries.ts";

export { findSignInAccount, findSignInAccountByEmail, lockSignInAccount } from "./queries.ts";

/** An account that may sign in, with its password hash. Never part of a response. */
export interface SignInAccount {
  id: string;
  email: string;
  name: string;
  /** When the user first proved access to the mailbox. */
  emailVerifiedAt: Date | null;
  passwordHash: string | null;
}

export interface VerifiedRegistration {
  email: string;
  /** null: a neutral name until the user chooses one. */
  name: string | null;
  passwordHash: string | null;
}

/** The mailbox was just verified. Returns false when it has an account already. */
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
    emailVerifiedAt: ctx.now(),
    verified: false,
    passwordHash,
    demo: false,
    createdAt: ctx.now(),
  });
}

/** Shown beside products and reviews, so it holds no part of the email address. The end of a UUIDv7 is random. */
const defaultName = (id: string) => `Member ${id.slice(-6)}`;

/** Removes the password: before the first verification, a stranger may have set it. */
export async function markEmailVerified(ctx: Context, tx: Tx, userId: string): Promise<boolean> {
  return (await updateEmailVerified(tx, userId, ctx.now())) !== undefined;
}

export async function setPassword(tx: Tx, userId: string, passwordHash: string): Promise<void> {
  await updatePassword(tx, userId, passwordHash);
}
