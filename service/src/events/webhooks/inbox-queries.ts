import type { Queries } from "../../platform/db/database.ts";

export const listSecretsByUrlSuffix = (db: Queries, ending: string, at: Date) =>
  db
    .selectFrom("webhook_endpoints as e")
    .innerJoin("webhook_secrets as s", (join) =>
      join.on((row) => row("s.endpoint_id", "=", row.fn.coalesce("e.signs_as", "e.id"))),
    )
    .where("e.deleted_at", "is", null)
    .where((row) => row(row.fn("right", ["e.url", row.val(ending.length)]), "=", ending))
    .where("s.activates_at", "<=", at)
    .where((row) => row.or([row("s.expires_at", "is", null), row("s.expires_at", ">", at)]))
    .select(["e.user_id as userId", "s.id", "s.sealed_secret as sealed"])
    .execute();
