import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import { sealedColumn } from "../../platform/db/sealed-columns.ts";
import { insertSecret } from "./secret-queries.ts";
import { generateWebhookSecret } from "./signature.ts";

/** Binds a sealed secret to its owner and row: copied to another row, it does not open. */
const sealContext = (userId: string, id: string) => `webhook-secret|${userId}|${id}`;

export const sealedSecrets = sealedColumn({
  table: "webhook_secrets",
  column: "sealed_secret",
  key: { id: "uuid" },
  bound: { userId: "select e.user_id from webhook_endpoints e where e.id = t.endpoint_id", id: "t.id" },
  contextOf: ({ userId, id }) => sealContext(userId, id),
});

interface SealedSecret {
  id: string;
  userId: string;
  sealed: string;
}

/** Skips secrets whose key is no longer in the ring. */
export const openSecrets = (ctx: Context, secrets: readonly SealedSecret[]): string[] =>
  secrets.flatMap(({ id, userId, sealed }) => {
    try {
      return [ctx.vault.open(sealed, sealContext(userId, id))];
    } catch (error) {
      ctx.log.error({ secret: id, err: error }, "the secret of a webhook endpoint cannot be opened");
      return [];
    }
  });

/** Returns the secret. Only the sealed form is stored, so it cannot be shown again. */
export async function createSecret(
  ctx: Context,
  tx: Tx,
  endpoint: { id: string; userId: string },
  activatesAt: Date,
): Promise<string> {
  const secret = generateWebhookSecret();
  const id = ctx.newId();
  const sealed = ctx.vault.seal(secret, sealContext(endpoint.userId, id));
  await insertSecret(tx, { id, endpointId: endpoint.id, sealedSecret: sealed, activatesAt });
  return secret;
}
