import { type CallbackData, type CallbackType, callbackTypes } from "@stoa/contract";
import { lockAccount } from "../../accounts/people/accounts.ts";
import { toUserId } from "../../accounts/people/users.ts";
import type { Context, RequestSource } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import { announceApart } from "../outbox/outbox.ts";
import { toCallable } from "./address.ts";
import { findCallback, insertCallback, switchOnCallback } from "./callback-queries.ts";
import { insertDelivery, lockLanes } from "./delivery-queries.ts";
import { callbackSecretLetter } from "./letters.ts";
import { drawAnother } from "./rotation.ts";
import { reportSecretChange } from "./secret-changes.ts";
import { findSigning } from "./secret-queries.ts";
import { drawSecret } from "./secrets.ts";

/** Of the row whose secrets sign all callbacks of an account. */
const NOWHERE = "";
const OVERLAP_HOURS = 24;

/**
 * Where an account's work calls back: an endpoint that is in no list; its id is answered. An address that was given up is tried anew.
 * Throws where it may not be called, naming `webhookUrl`.
 */
export async function openCallback(ctx: Context, userId: string, text: string): Promise<string> {
  const url = toCallable(ctx, text, "webhookUrl");
  return ctx.db.transaction().execute(async (tx) => {
    await lockAccount(tx, userId);
    const signsAs = await openSigner(ctx, tx, userId);
    const known = await findCallback(tx, userId, url);
    if (known) await switchOnCallback(tx, known, ctx.now());
    return known ?? insertRow(ctx, tx, userId, url, signsAs);
  });
}

/** The row that signs for all others of the account, with a secret. The account is locked. */
async function openSigner(ctx: Context, tx: Tx, userId: string): Promise<string> {
  const known = await findCallback(tx, userId, NOWHERE);
  if (known) return known;
  const id = await insertRow(ctx, tx, userId, NOWHERE, null);
  await drawSecret(ctx, tx, { id, userId }, ctx.now());
  return id;
}

async function insertRow(ctx: Context, tx: Tx, userId: string, url: string, signsAs: string | null) {
  const id = ctx.newId();
  await insertCallback(tx, { id, userId, url, signsAs, types: callbackTypes, now: ctx.now() });
  return id;
}

/** Writes what is told there, in the transaction of the change that it tells of: it is delivered as events are. */
export async function callBack(
  ctx: Context,
  tx: Tx,
  endpointId: string,
  type: CallbackType,
  data: CallbackData,
): Promise<void> {
  const eventId = await announceApart(ctx, tx, type, data);
  await lockLanes(tx, [endpointId]);
  await insertDelivery(tx, { id: ctx.newId(), eventId, endpointId }, ctx.now());
}

/** Since when the secrets that sign callbacks do, the newest first, and until when; none before the first is needed or drawn. */
export async function findCallbackSecrets(ctx: Context, userId: string) {
  const signer = await findCallback(ctx.db, userId, NOWHERE);
  return signer ? findSigning(ctx.db, signer, ctx.now()) : [];
}

/** Draws a secret for callbacks: it signs at once, and the one before beside it for a day. */
export const drawCallbackSecret = (ctx: Context, userId: string, source: RequestSource) =>
  ctx.db.transaction().execute(async (tx) => {
    await lockAccount(tx, userId);
    const id = await openSigner(ctx, tx, userId);
    await lockLanes(tx, [id]);
    await ctx.idempotencyKey?.bind(tx, toUserId(userId));
    const change = { action: "callback_secret.rotated" as const };
    await reportSecretChange(ctx, tx, { userId }, source, change, callbackSecretLetter(ctx));
    return drawAnother(ctx, tx, { id, userId }, { activatesAt: ctx.now(), overlapHours: OVERLAP_HOURS });
  });
