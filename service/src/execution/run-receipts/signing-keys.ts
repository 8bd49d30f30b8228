import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from "jose";
import type { Context } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { firstOf, required } from "../../core/required.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { sealedColumn } from "../../platform/db/sealed-columns.ts";
import {
  insertRunReceiptKey,
  listRunReceiptKeys,
  lockRunReceiptKeys,
  type RunReceiptKeyRow,
} from "./queries.ts";

export const RECEIPT_ALGORITHM = "EdDSA";
/** After this time a new key signs. */
const KEY_LIFETIME_DAYS = 365;

const sealContext = (kid: string) => `receipt-key|${kid}`;

export const sealedRunReceiptKeys = sealedColumn({
  table: "run_receipt_keys",
  column: "sealed_key",
  key: { kid: "text" },
  bound: { kid: "t.kid" },
  contextOf: ({ kid }) => sealContext(kid),
});

/** Returns the newest key, or creates one if it is too old. Of concurrent requests one creates it. */
export async function findOrCreateSigningKey(ctx: Context, db: Queries = ctx.db) {
  const [newest] = await listRunReceiptKeys(db);
  const oldest = daysAfter(ctx.now(), -KEY_LIFETIME_DAYS);
  const row = newest && newest.createdAt > oldest ? newest : await createSigningKey(ctx, db, oldest);
  const jwk: JWK = JSON.parse(ctx.vault.open(row.sealedKey, sealContext(row.kid)));
  return { kid: row.kid, key: await importJWK(jwk, RECEIPT_ALGORITHM) };
}

async function createSigningKey(ctx: Context, db: Queries, unlessSince: Date): Promise<RunReceiptKeyRow> {
  const { privateKey } = await generateKeyPair(RECEIPT_ALGORITHM, { extractable: true });
  const jwk = await exportJWK(privateKey);
  const kid = await calculateJwkThumbprint(jwk);
  const sealedKey = ctx.vault.seal(JSON.stringify(jwk), sealContext(kid));
  const key = {
    kid,
    publicKey: required(jwk.x, "the public part of a key"),
    sealedKey,
    createdAt: ctx.now(),
  };
  const insert = async (tx: Tx) => {
    await lockRunReceiptKeys(tx);
    await insertRunReceiptKey(tx, key, unlessSince);
  };
  await (db.isTransaction ? insert(db as Tx) : db.transaction().execute(insert));
  return firstOf(await listRunReceiptKeys(db));
}

/** All keys that ever signed, as a JSON Web Key Set (RFC 7517). */
export async function listPublicKeys(ctx: Context): Promise<{ keys: JWK[] }> {
  const rows = await listRunReceiptKeys(ctx.db);
  return {
    keys: rows.map(({ kid, publicKey }) => ({
      ...{ kty: "OKP", crv: "Ed25519", x: publicKey },
      ...{ kid, use: "sig", alg: RECEIPT_ALGORITHM },
    })),
  };
}
