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

/** Allows one transaction at a time to create a key. The next one sees that key in its next statement. */
export const lockRunReceiptKeys = (tx: Tx) =>
  sql`select pg_advisory_xact_lock(hashtext('run_receipt_keys'))`.execute(tx);

/** Inserts the key unless one exists that was created after `unlessSince`. */
export const insertRunReceiptKey = (tx: Tx, key: RunReceiptKeyRow, unlessSince: Date) =>
  sql`
    insert into run_receipt_keys (kid, public_key, sealed_key, created_at)
    select ${key.kid}, ${key.publicKey}, ${key.sealedKey}, ${key.createdAt}
     where not exists (select from run_receipt_keys where created_at > ${unlessSince})`.execute(tx);
