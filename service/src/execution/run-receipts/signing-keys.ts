import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from "jose";
import type { Context } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { sealedColumn } from "../../platform/db/sealed-columns.ts";
import { insertReceiptKey, listReceiptKeys, lockReceiptKeys, type ReceiptKeyRow } from "./queries.ts";

export const RECEIPT_ALGORITHM = "EdDSA";
/** Then another one signs. */
const SIGNS_FOR_DAYS = 365;

const sealContext = (kid: string) => `receipt-key|${kid}`;

export const sealedReceiptKeys = sealedColumn({
  table: "receipt_keys",
  column: "sealed_key",
  key: { kid: "text" },
  bound: { kid: "t.kid" },
  contextOf: ({ kid }) => sealContext(kid),
});

/** The newest key, which signs; made where there is none, or none that is young enough. Of many who make it at once one does. */
export async function signingKey(ctx: Context) {
  const [newest] = await listReceiptKeys(ctx.db);
  const oldest = daysAfter(ctx.now(), -SIGNS_FOR_DAYS);
  const row = newest && newest.createdAt > oldest ? newest : await madeKey(ctx, oldest);
  const jwk: JWK = JSON.parse(ctx.vault.open(row.sealedKey, sealContext(row.kid)));
  return { kid: row.kid, key: await importJWK(jwk, RECEIPT_ALGORITHM) };
}

async function madeKey(ctx: Context, unlessSince: Date): Promise<ReceiptKeyRow> {
  const { privateKey } = await generateKeyPair(RECEIPT_ALGORITHM, { extractable: true });
  const jwk = await exportJWK(privateKey);
  const kid = await calculateJwkThumbprint(jwk);
  const sealedKey = ctx.vault.seal(JSON.stringify(jwk), sealContext(kid));
  const key = { kid, publicKey: jwk.x!, sealedKey, createdAt: ctx.now() };
  await ctx.db.transaction().execute(async (tx) => {
    await lockReceiptKeys(tx);
    await insertReceiptKey(tx, key, unlessSince);
  });
  const [newest] = await listReceiptKeys(ctx.db);
  return newest!;
}

/** All that ever signed, as a JSON Web Key Set (RFC 7517). */
export async function publicKeys(ctx: Context): Promise<{ keys: JWK[] }> {
  const rows = await listReceiptKeys(ctx.db);
  return {
    keys: rows.map(({ kid, publicKey }) => ({
      ...{ kty: "OKP", crv: "Ed25519", x: publicKey },
      ...{ kid, use: "sig", alg: RECEIPT_ALGORITHM },
    })),
  };
}
