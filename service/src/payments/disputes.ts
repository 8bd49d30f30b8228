import type { Context } from "../context.ts";
import { eachInTurn } from "../jobs/in-turn.ts";
import type { Dispute } from "../outside/payments.ts";
import { listOpenDisputes, readCursor, writeCursor } from "./dispute-queries.ts";

/** Moves a room's rows to a dispute as the provider has it; false: it is about none of them. worker.ts names the rooms. */
export type DisputeRoom = (ctx: Context, dispute: Dispute) => Promise<boolean>;

const CURSOR = "disputes";
/** The provider's clock and ours may differ, and its list may be late. */
const OVERLAP_MS = 3_600_000;
const EVER = new Date(0);

/** Reads a dispute from the provider and moves ours to it, whatever was reported of it before, how often and in which order. */
export async function syncDispute(ctx: Context, rooms: DisputeRoom[], disputeId: string): Promise<void> {
  const dispute = await ctx.outside.payments.findDispute(disputeId);
  if (dispute) await applyDispute(ctx, rooms, dispute);
  else ctx.log.warn({ dispute: disputeId }, "a dispute that concerns no order of ours");
}

async function applyDispute(ctx: Context, rooms: DisputeRoom[], dispute: Dispute): Promise<void> {
  for (const room of rooms) if (await room(ctx, dispute)) return;
  ctx.log.warn({ dispute: dispute.disputeId }, "a dispute that concerns no order of ours");
}

/**
 * The job: notices get lost. It reads the open disputes, and lists what the provider has opened since it last looked: what could not
 * be applied then is listed again.
 */
export async function reconcileDisputes(ctx: Context, rooms: DisputeRoom[]): Promise<void> {
  const warn = (disputeId: string, err: unknown) =>
    ctx.log.warn({ dispute: disputeId, err }, "a dispute could not be read; the next round tries again");
  const open = await listOpenDisputes(ctx.db);
  await eachInTurn(
    open,
    ({ id }) => syncDispute(ctx, rooms, id),
    ({ id }, err) => warn(id, err),
  );
  const known = new Set(open.map(({ id }) => id));
  let readUntil = ctx.now();
  const listed = await listSinceCursor(ctx);
  await eachInTurn(
    listed.filter(({ disputeId }) => !known.has(disputeId)),
    (dispute) => applyDispute(ctx, rooms, dispute),
    ({ disputeId, createdAt }, err) => {
      if (createdAt < readUntil) readUntil = createdAt;
      warn(disputeId, err);
    },
  );
  await writeCursor(ctx.db, CURSOR, readUntil);
}

/** The oldest first. */
async function listSinceCursor(ctx: Context): Promise<Dispute[]> {
  const cursor = await readCursor(ctx.db, CURSOR);
  const since = cursor ? new Date(cursor.getTime() - OVERLAP_MS) : EVER;
  const listed: Dispute[] = [];
  for await (const dispute of ctx.outside.payments.listDisputes(since)) listed.push(dispute);
  return listed.toSorted((one, other) => one.createdAt.getTime() - other.createdAt.getTime());
}
