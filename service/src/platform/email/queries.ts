import type { Queries } from "../db/database.ts";

export interface NewEmailRow {
  id: string;
  recipient: string;
  sealed_email: string;
  created_at: Date;
}

export const insertEmail = (tx: Queries, mail: NewEmailRow) => tx.insertInto("emails").values(mail).execute();

const unsealableEmails = (db: Queries) =>
  db
    .selectFrom("emails")
    .select(["id", "recipient", "sealed_email as sealedLetter", "created_at as createdAt"])
    .where("sealed_email", "is not", null)
    .$narrowType<{ sealedLetter: string }>();

export const findUnsentEmail = (db: Queries, id: string) =>
  unsealableEmails(db)
    .where("id", "=", id)
    .where("sent_at", "is", null)
    .where("refused_at", "is", null)
    .executeTakeFirst();

export const findStoredEmail = (db: Queries, id: string) =>
  unsealableEmails(db).where("id", "=", id).executeTakeFirst();

/** Newest first. */
export const listStoredEmails = (db: Queries, limit: number) =>
  unsealableEmails(db).orderBy("created_at", "desc").orderBy("id", "desc").limit(limit).execute();

interface EmailUpdate {
  sent_at?: Date;
  refused_at?: Date;
  sealed_email?: null;
}

export const updateEmail = (db: Queries, id: string, outcome: EmailUpdate) =>
  db.updateTable("emails").set(outcome).where("id", "=", id).execute();

export const deleteEmailsBefore = (db: Queries, before: Date) =>
  db.deleteFrom("emails").where("created_at", "<", before).execute();
