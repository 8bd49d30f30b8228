import { type NumberAmounts, toBigintAmounts } from "../../platform/db/bigint-amounts.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";

export interface DisputeRow {
  id: string;
  orderId: string;
  status: "inquiry" | "inquiry_closed" | "open" | "won" | "lost";
  amountMinor: bigint;
  /** What of it is held back of the order now. */
  heldMinor: bigint;
  reason: string;
  openedAt: Date;
  closedAt: Date | null;
}

const disputes = (db: Queries) =>
  db
    .selectFrom("disputes")
    .select([
      ...(["id", "order_id as orderId", "status", "reason"] as const),
      ...(["amount_minor as amountMinor", "held_minor as heldMinor"] as const),
      ...(["opened_at as openedAt", "closed_at as closedAt"] as const),
    ])
    .$castTo<NumberAmounts<DisputeRow>>();

const toRow = (drawn: NumberAmounts<DisputeRow>): DisputeRow => toBigintAmounts(drawn);

export async function findDisputeOf(db: Queries, providersId: string): Promise<DisputeRow | undefined> {
  const drawn = await disputes(db).where("provider_dispute_id", "=", providersId).executeTakeFirst();
  return drawn && toRow(drawn);
}

/** Inquiries that a bank made of it are none. */
export const listDisputesOfOrder = async (db: Queries, orderId: string): Promise<DisputeRow[]> =>
  (
    await disputes(db)
      .where("order_id", "=", orderId)
      .where("status", "in", ["open", "won", "lost"])
      .orderBy("id")
      .execute()
  ).map(toRow);

/** The open ones of a locked order, by what they hold of it. */
export const listHolds = async (tx: Tx, orderId: string): Promise<DisputeRow[]> =>
  (await listDisputesOfOrder(tx, orderId)).filter(({ status }) => status === "open");

export interface NewDispute {
  id: string;
  status: "inquiry" | "open";
  order_id: string;
  provider_dispute_id: string;
  amount_minor: bigint;
  held_minor: bigint;
  fee_minor: bigint;
  reason: string;
  answer_by: Date | null;
  opened_at: Date;
}

export const insertDispute = (tx: Tx, dispute: NewDispute) =>
  tx.insertInto("disputes").values(dispute).execute();

/** An inquiry becomes a dispute. */
export const escalateInquiry = (tx: Tx, { id, ...dispute }: NewDispute) =>
  tx
    .updateTable("disputes")
    .set({ ...dispute, closed_at: null })
    .where("id", "=", id)
    .execute();

export const setHold = (tx: Tx, id: string, heldMinor: bigint) =>
  tx.updateTable("disputes").set({ held_minor: heldMinor }).where("id", "=", id).execute();

export interface DisputeClose {
  status: "inquiry_closed" | "won" | "lost";
  fee_minor: bigint;
  lost_minor?: bigint;
  excess_minor?: bigint;
  closed_at: Date;
}

/** What it held is settled, and held no longer. */
export const closeDispute = (tx: Tx, providersId: string, close: DisputeClose) =>
  tx
    .updateTable("disputes")
    .set({ ...close, held_minor: 0n })
    .where("provider_dispute_id", "=", providersId)
    .execute();
