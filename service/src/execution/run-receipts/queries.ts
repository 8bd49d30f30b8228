import { sql } from "kysely";
import type { Queries, Tx } from "../../platform/db/database.ts";

export interface RunReceiptKeyRow {
  kid: string;
  /** `x` of the JWK: the public key in base64url. */
  publicKey: string;
  sealedKey: string;
  createdAt: Date;
}

export const listRunReceiptKeys = (db: Queries): Promise<RunReceiptKeyRow[]> =>
  db.selectFrom("runReceiptKeys").selectAll().orderBy("createdAt", "desc").orderBy("kid").execute();

/** Until the transaction ends nobody else makes one: who waited for that sees in its next statement what was made. */
export const lockRunReceiptKeys = (tx: Tx) =>
  sql`select pg_advisory_xact_lock(hashtext('run_receipt_keys'))`.execute(tx);

/** Unless there is one that is younger. */
export const insertRunReceiptKey = (tx: Tx, key: RunReceiptKeyRow, unlessSince: Date) =>
  sql`
    insert into run_receipt_keys (kid, public_key, sealed_key, created_at)
    select ${key.kid}, ${key.publicKey}, ${key.sealedKey}, ${key.createdAt}
     where not exists (select from run_receipt_keys where created_at > ${unlessSince})`.execute(tx);
