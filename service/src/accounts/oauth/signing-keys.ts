import { exportJWK, generateKeyPair } from "jose";
import type { JWK, JWKS } from "oidc-provider";
import type { Context } from "../../core/context.ts";
import { required } from "../../core/required.ts";
import { sealedColumn } from "../../platform/db/sealed-columns.ts";
import { insertSigningKey, listSigningKeys } from "./signing-key-queries.ts";

/** The first signs id tokens unless the client chooses another. */
const ALGORITHMS = ["RS256", "ES256", "EdDSA"];

const sealContext = (algorithm: string) => `oauth-signing-key|${algorithm}`;

export const sealedSigningKeys = sealedColumn({
  table: "oauth_signing_keys",
  column: "sealed_jwk",
  key: { algorithm: "text" },
  bound: { algorithm: "t.algorithm" },
  contextOf: ({ algorithm }) => sealContext(algorithm),
});

/** Created once, sealed in the database, shared by all processes. */
export async function loadSigningKeys(ctx: Context): Promise<JWKS> {
  const stored = await listSigningKeys(ctx.db);
  const missing = ALGORITHMS.filter((algorithm) => !stored.some((key) => key.algorithm === algorithm));
  if (missing.length > 0) {
    for (const algorithm of missing) await createSigningKey(ctx, algorithm);
    return loadSigningKeys(ctx);
  }
  return {
    keys: ALGORITHMS.map((algorithm) => {
      const { sealedJwk } = required(
        stored.find((key) => key.algorithm === algorithm),
        `a key for ${algorithm}`,
      );
      return JSON.parse(ctx.vault.open(sealedJwk, sealContext(algorithm))) as JWK;
    }),
  };
}

/** Of processes that create a key at the same time, one insert wins. */
async function createSigningKey(ctx: Context, algorithm: string): Promise<void> {
  const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
  const jwk = { ...(await exportJWK(privateKey)), alg: algorithm, use: "sig" };
  await insertSigningKey(ctx.db, {
    algorithm,
    sealedJwk: ctx.vault.seal(JSON.stringify(jwk), sealContext(algorithm)),
    createdAt: ctx.now(),
  });
}
