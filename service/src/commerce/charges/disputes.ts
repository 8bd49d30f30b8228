import type { Context } from "../../core/context.ts";
import { toUuid } from "../../core/ids.ts";
import type { Dispute } from "../../integrations/payments/payments.ts";
import { forEachRow } from "../../platform/jobs/for-each-row.ts";
import {
  deleteUnapplied,
  insertUnapplied,
  listOpenDisputes,
  listUnapplied,
  readCursor,
  writeCursor,
} from "./dispute-queries.ts";

/** Returns false if the dispute is about none of the room's rows. `jobs.ts` lists the handlers. */
export type DisputeHandler = (ctx: Context, dispute: Dispute) => Promise<boolean>;

const CURSOR_NAME = "disputes";
/** The provider's clock may differ from ours, and its list may lag. */
const OVERLAP_MS = 3_600_000;
const BEGINNING_OF_TIME = new Date(0);

/** Reads the dispute from the provider, so that webhooks may come twice and in any order. */
export async function syncDispute(ctx: Context, rooms: DisputeHandler[], disputeId: string): Promise<void> {
  const dispute = await ctx.integrations.payments.findDispute(disputeId);
  if (dispute) await applyDispute(ctx, rooms, dispute);
  else ctx.log.warn({ dispute: disputeId }, "a dispute is about no order of ours");
  await deleteUnapplied(ctx.db, disputeId);
}

async function applyDispute(ctx: Context, rooms: DisputeHandler[], dispute: Dispute): Promise<void> {
  for (const room of rooms) if (await room(ctx, dispute)) return;
  ctx.log.warn({ dispute: dispute.disputeId }, "a dispute is about no order of ours");
}

/** Webhooks get lost: reads open disputes, disputes that could not be applied, and new ones in the provider's list. */
export async function reconcileDisputes(ctx: Context, rooms: DisputeHandler[]): Promise<void> {
  const known = [...(await listOpenDisputes(ctx.db)), ...(await listUnapplied(ctx.db))];
  await forEachRow(
    known,
    ({ id }) => syncDispute(ctx, rooms, id),
    ({ id }, err) =>
      ctx.log.warn({ dispute: id, err }, "a dispute could not be synced; the next job run tries again"),
  );
  const knownIds = new Set(known.map(({ id }) => id));
  const readUntil = ctx.now();
  for (const dispute of await listSinceCursor(ctx))
    if (!knownIds.has(dispute.disputeId)) await applyOrStoreForRetry(ctx, rooms, dispute);
  await writeCursor(ctx.db, CURSOR_NAME, readUntil);
}

/** A failing dispute does not stop the list. If the database is unavailable, the next job run reads the list again. */
async function applyOrStoreForRetry(ctx: Context, rooms: DisputeHandler[], dispute: Dispute): Promise<void> {
  const { disputeId, orderId } = dispute;
  try {
    await applyDispute(ctx, rooms, dispute);
  } catch (err) {
    ctx.log.error(
      { dispute: disputeId, of: orderId, err },
      "a dispute could not be applied: the next job run tries it again",
    );
    await insertUnapplied(ctx.db, {
      providerDisputeId: disputeId,
      orderId: toUuid("ord", orderId),
      paymentId: toUuid("pay", orderId),
      since: ctx.now(),
    });
  }
}

/** Oldest first. */
async function listSinceCursor(ctx: Context): Promise<Dispute[]> {
  const cursor = await readCursor(ctx.db, CURSOR_NAME);
  const since = cursor ? new Date(cursor.getTime() - OVERLAP_MS) : BEGINNING_OF_TIME;
  const listed: Dispute[] = [];
  for await (const dispute of ctx.integrations.payments.listDisputes(since)) listed.push(dispute);
  return listed.toSorted((one, other) => one.createdAt.getTime() - other.createdAt.getTime());
}
