import type { Queries } from "../db/database.ts";

export interface NewEmailRow {
  id: string;
  recipient: string;
  sealedEmail: string;
  createdAt: Date;
}

export const insertEmail = (tx: Queries, mail: NewEmailRow) => tx.insertInto("emails").values(mail).execute();

const unsealableEmails = (db: Queries) =>
  db
    .selectFrom("emails")
    .select(["id", "recipient", "sealedEmail as sealedLetter", "createdAt"])
    .where("sealedEmail", "is not", null)
    .$narrowType<{ sealedLetter: string }>();

export const findUnsentEmail = (db: Queries, id: string) =>
  unsealableEmails(db)
    .where("id", "=", id)
    .where("sentAt", "is", null)
    .where("refusedAt", "is", null)
    .executeTakeFirst();

export const findStoredEmail = (db: Queries, id: string) =>
  unsealableEmails(db).where("id", "=", id).executeTakeFirst();

export const listStoredEmails = (db: Queries, limit: number) =>
  unsealableEmails(db).orderBy("createdAt", "desc").orderBy("id", "desc").limit(limit).execute();

interface EmailUpdate {
  sentAt?: Date;
  refusedAt?: Date;
  sealedEmail?: null;
}

export const updateEmail = (db: Queries, id: string, outcome: EmailUpdate) =>
  db.updateTable("emails").set(outcome).where("id", "=", id).execute();

export const deleteEmailsBefore = (db: Queries, before: Date) =>
  db.deleteFrom("emails").where("createdAt", "<", before).execute();
