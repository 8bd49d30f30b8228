import { type CallbackData, type CallbackType, callbackTypes } from "@stoa/contract";
import { lockAccount } from "../../accounts/people/accounts.ts";
import { toUserId } from "../../accounts/people/users.ts";
import type { Context, RequestSource } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import { publishCallbackEvent } from "../outbox/outbox.ts";
import { enableCallback, findCallback, insertCallback } from "./callback-queries.ts";
import { insertDelivery, lockQueues } from "./delivery-queries.ts";
import { callbackSecretRotatedEmail } from "./emails.ts";
import { normalizeEndpointUrl } from "./endpoint-url.ts";
import { recordSecretChange } from "./secret-changes.ts";
import { listSigningSecrets } from "./secret-queries.ts";
import { addSecret } from "./secret-rotation.ts";
import { createSecret } from "./secrets.ts";

/** This row holds the secrets that sign all callbacks of the account. */
const SIGNER_URL = "";
const OVERLAP_HOURS = 24;

/**
 * Returns the id of an endpoint that no list shows. An endpoint that was disabled is enabled again. Throws with the
 * field `webhookUrl` when the URL is not allowed.
 */
export async function findOrCreateCallback(ctx: Context, userId: string, text: string): Promise<string> {
  const url = normalizeEndpointUrl(ctx, text, "webhookUrl");
  return ctx.db.transaction().execute(async (tx) => {
    await lockAccount(tx, userId);
    const signsAs = await findOrCreateSigner(ctx, tx, userId);
    const existing = await findCallback(tx, userId, url);
    if (existing) await enableCallback(tx, existing, ctx.now());
    return existing ?? insertRow(ctx, tx, userId, url, signsAs);
  });
}

/** The caller holds the lock of the account. */
async function findOrCreateSigner(ctx: Context, tx: Tx, userId: string): Promise<string> {
  const existing = await findCallback(tx, userId, SIGNER_URL);
  if (existing) return existing;
  const id = await insertRow(ctx, tx, userId, SIGNER_URL, null);
  await createSecret(ctx, tx, { id, userId }, ctx.now());
  return id;
}

async function insertRow(ctx: Context, tx: Tx, userId: string, url: string, signsAs: string | null) {
  const id = ctx.newId();
  await insertCallback(tx, { id, userId, url, signsAs, types: callbackTypes, now: ctx.now() });
  return id;
}

/** Inserts the callback in the transaction of the change. The worker delivers it like an event. */
export async function sendCallback(
  ctx: Context,
  tx: Tx,
  endpointId: string,
  type: CallbackType,
  data: CallbackData,
): Promise<void> {
  const eventId = await publishCallbackEvent(ctx, tx, type, data);
  await lockQueues(tx, [endpointId]);
  await insertDelivery(tx, { id: ctx.newId(), eventId, endpointId }, ctx.now());
}

/** Newest first. Empty before the account has its first secret. */
export async function findCallbackSecrets(ctx: Context, userId: string) {
  const signer = await findCallback(ctx.db, userId, SIGNER_URL);
  return signer ? listSigningSecrets(ctx.db, signer, ctx.now()) : [];
}

/** The new secret signs at once, and the previous one beside it for a day. */
export const rotateCallbackSecret = (ctx: Context, userId: string, source: RequestSource) =>
  ctx.db.transaction().execute(async (tx) => {
    await lockAccount(tx, userId);
    const id = await findOrCreateSigner(ctx, tx, userId);
    await lockQueues(tx, [id]);
    await ctx.idempotencyKey?.bind(tx, toUserId(userId));
    const change = { action: "callback_secret.rotated" as const };
    await recordSecretChange(ctx, tx, { userId }, source, change, {
      data: { change: "callback_secret", url: null },
      message: callbackSecretRotatedEmail(ctx),
    });
    return addSecret(ctx, tx, { id, userId }, { activatesAt: ctx.now(), overlapHours: OVERLAP_HOURS });
  });
