import type { FastifyInstance } from "fastify";
import type { Context } from "../../core/context.ts";
import { listPublicKeys } from "./signing-keys.ts";

export const RECEIPT_KEYS_PATH = "/.well-known/stoa-receipts.json";

/** Any reader of a receipt may fetch the keys, also from pages of other origins. */
export function addRunReceiptKeys(app: FastifyInstance, ctx: Context): void {
  app.get(RECEIPT_KEYS_PATH, { config: { cors: { origin: "*" } } }, async (_request, reply) => {
    reply.header("cache-control", "public, max-age=300").type("application/jwk-set+json");
    return JSON.stringify(await listPublicKeys(ctx));
  });
}
