import type { Queries } from "../../platform/db/database.ts";

export const listSigningKeys = (db: Queries) =>
  db.selectFrom("oauth_signing_keys").select(["algorithm", "sealed_jwk as sealedJwk"]).execute();

export const insertSigningKey = (
  db: Queries,
  key: { algorithm: string; sealed_jwk: string; created_at: Date },
) =>
  db
    .insertInto("oauth_signing_keys")
    .values(key)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
