import type { Queries } from "../db/database.ts";

/** Secrets of endpoints whose address ends so, used up ones too. */
export const listSecretsByEnding = (db: Queries, ending: string) =>
  db
    .selectFrom("webhook_endpoints as e")
    .innerJoin("webhook_secrets as s", "s.endpoint_id", "e.id")
    .where("e.deleted_at", "is", null)
    .where((row) => row(row.fn("right", ["e.url", row.val(ending.length)]), "=", ending))
    .select(["e.user_id as userId", "s.id", "s.sealed_secret as sealed"])
    .select(["s.activates_at as activatesAt", "s.expires_at as expiresAt"])
    .execute();
