import type { Queries } from "../db/database.ts";

export interface NewMail {
  id: string;
  recipient: string;
  sealed_letter: string;
  created_at: Date;
}

export const insertMail = (tx: Queries, mail: NewMail) => tx.insertInto("mails").values(mail).execute();

const kept = (db: Queries) =>
  db
    .selectFrom("mails")
    .select(["id", "recipient", "sealed_letter as sealedLetter", "created_at as createdAt"])
    .where("sealed_letter", "is not", null)
    .$narrowType<{ sealedLetter: string }>();

export const findUncarriedMail = (db: Queries, id: string) =>
  kept(db)
    .where("id", "=", id)
    .where("sent_at", "is", null)
    .where("refused_at", "is", null)
    .executeTakeFirst();

export const findKeptMail = (db: Queries, id: string) => kept(db).where("id", "=", id).executeTakeFirst();

/** Newest first. */
export const listKeptMails = (db: Queries, limit: number) =>
  kept(db).orderBy("created_at", "desc").orderBy("id", "desc").limit(limit).execute();

interface Outcome {
  sent_at?: Date;
  refused_at?: Date;
  sealed_letter?: null;
}

export const stampMail = (db: Queries, id: string, outcome: Outcome) =>
  db.updateTable("mails").set(outcome).where("id", "=", id).execute();

export const deleteMailsBefore = (db: Queries, before: Date) =>
  db.deleteFrom("mails").where("created_at", "<", before).execute();
