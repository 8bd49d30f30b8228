import type { Queries } from "../../platform/db/database.ts";

export const listSecretsByUrlSuffix = (db: Queries, ending: string, at: Date) =>
  db
    .selectFrom("webhookEndpoints as e")
    .innerJoin("webhookSecrets as s", (join) =>
      join.on((row) => row("s.endpointId", "=", row.fn.coalesce("e.signsAs", "e.id"))),
    )
    .where("e.deletedAt", "is", null)
    .where((row) => row(row.fn("right", ["e.url", row.val(ending.length)]), "=", ending))
    .where("s.activatesAt", "<=", at)
    .where((row) => row.or([row("s.expiresAt", "is", null), row("s.expiresAt", ">", at)]))
    .select(["e.userId", "s.id", "s.sealedSecret as sealed"])
    .execute();
