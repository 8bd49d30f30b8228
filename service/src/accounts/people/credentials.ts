import type { Context } from "../../core/context.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import {
  findEntrant,
  findEntrantByEmail,
  insertUserUnlessKnown,
  markProven,
  shareEntrant,
  updatePassword,
} from "./queries.ts";

/** An account that may enter, with what its password is judged by: for sign-in alone, never for an answer. */
export interface Entrant {
  id: string;
  email: string;
  name: string;
  /** When somebody proved to read its mailbox. */
  mailboxProvenAt: Date | null;
  passwordHash: string | null;
}

export const entrantById = (db: Queries, userId: string): Promise<Entrant | undefined> =>
  findEntrant(db, userId);

export const entrantByEmail = (db: Queries, email: string): Promise<Entrant | undefined> =>
  findEntrantByEmail(db, email);

export interface ProvenMailbox {
  email: string;
  /** null: a neutral one until the person chooses. */
  name: string | null;
  passwordHash: string | null;
}

/** Makes the account of a mailbox that was proven just now; false when it has one already. */
export function openAccount(ctx: Context, tx: Tx, { email, name, passwordHash }: ProvenMailbox) {
  const id = ctx.newId();
  return insertUserUnlessKnown(tx, {
    id,
    email,
    name: name ?? neutralName(id),
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
const neutralName = (id: string) => `Member ${id.slice(-6)}`;

/** Notes the first proof of a mailbox; whoever set a password before it may be somebody else, so that is gone. */
export async function proveMailbox(ctx: Context, tx: Tx, userId: string): Promise<boolean> {
  return (await markProven(tx, userId, ctx.now())) !== undefined;
}

export async function setPassword(tx: Tx, userId: string, passwordHash: string): Promise<void> {
  await updatePassword(tx, userId, passwordHash);
}

/** As it is now, and stays until the transaction ends: neither banned nor closed, its password and second factor the same. */
export const holdEntrant = (tx: Tx, userId: string): Promise<Entrant | undefined> => shareEntrant(tx, userId);
