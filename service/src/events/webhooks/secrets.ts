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
export const openSecrets = (
  ctx: Context,
  secrets: readonly SealedSecret[],
  open: (secret: SealedSecret) => string = (secret) => openSecret(ctx, secret),
): string[] =>
  secrets.flatMap((secret) => {
    try {
      return [open(secret)];
    } catch (error) {
      ctx.log.error({ secret: secret.id, err: error }, "the secret of a webhook endpoint cannot be opened");
      return [];
    }
  });

const openSecret = (ctx: Context, { id, userId, sealed }: SealedSecret): string =>
  ctx.vault.open(sealed, sealContext(userId, id));

const MAX_CACHED = 1_000;

/** The secrets that were opened last: opening one takes longer than signing a delivery. */
export class SecretCache {
  readonly #ctx: Context;
  readonly #opened = new Map<string, string>();

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  open(secrets: readonly SealedSecret[]): string[] {
    return openSecrets(this.#ctx, secrets, (secret) => this.#openOne(secret));
  }

  #openOne(secret: SealedSecret): string {
    const key = `${sealContext(secret.userId, secret.id)}|${secret.sealed}`;
    const cached = this.#opened.get(key);
    if (cached !== undefined) return cached;
    const opened = openSecret(this.#ctx, secret);
    if (this.#opened.size === MAX_CACHED) this.#opened.clear();
    this.#opened.set(key, opened);
    return opened;
  }
}

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
