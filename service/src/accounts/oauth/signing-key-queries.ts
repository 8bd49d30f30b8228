import type { Queries } from "../../platform/db/database.ts";

export const listSigningKeys = (db: Queries) =>
  db.selectFrom("oauthSigningKeys").select(["algorithm", "sealedJwk"]).execute();

export const insertSigningKey = (
  db: Queries,
  key: { algorithm: string; sealedJwk: string; createdAt: Date },
) =>
  db
    .insertInto("oauthSigningKeys")
    .values(key)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
