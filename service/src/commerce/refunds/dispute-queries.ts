import { type NumberAmounts, toBigintAmounts } from "../../platform/db/bigint-amounts.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";

export interface DisputeRow {
  id: string;
  orderId: string;
  status: "inquiry" | "inquiry_closed" | "open" | "won" | "lost";
  amountMinor: bigint;
  heldMinor: bigint;
  reason: string;
  openedAt: Date;
  closedAt: Date | null;
}

const disputes = (db: Queries) =>
  db
    .selectFrom("disputes")
    .select(["id", "orderId", "status", "reason", "amountMinor", "heldMinor", "openedAt", "closedAt"])
    .$castTo<NumberAmounts<DisputeRow>>();

const toRow = (row: NumberAmounts<DisputeRow>): DisputeRow => toBigintAmounts(row);

export async function findDisputeOf(db: Queries, providersId: string): Promise<DisputeRow | undefined> {
  const row = await disputes(db).where("providerDisputeId", "=", providersId).executeTakeFirst();
  return row && toRow(row);
}

/** Excludes inquiries. */
export const listDisputesOfOrder = async (db: Queries, orderId: string): Promise<DisputeRow[]> =>
  (
    await disputes(db)
      .where("orderId", "=", orderId)
      .where("status", "in", ["open", "won", "lost"])
      .orderBy("id")
      .execute()
  ).map(toRow);

export const listHolds = async (tx: Tx, orderId: string): Promise<DisputeRow[]> =>
  (await listDisputesOfOrder(tx, orderId)).filter(({ status }) => status === "open");

export interface NewDispute {
  id: string;
  status: "inquiry" | "open";
  orderId: string;
  providerDisputeId: string;
  amountMinor: bigint;
  heldMinor: bigint;
  feeMinor: bigint;
  reason: string;
  answerBy: Date | null;
  openedAt: Date;
}

export const insertDispute = (tx: Tx, dispute: NewDispute) =>
  tx.insertInto("disputes").values(dispute).execute();

export const escalateInquiry = (tx: Tx, { id, ...dispute }: NewDispute) =>
  tx
    .updateTable("disputes")
    .set({ ...dispute, closedAt: null })
    .where("id", "=", id)
    .execute();

export const setHold = (tx: Tx, id: string, heldMinor: bigint) =>
  tx.updateTable("disputes").set({ heldMinor }).where("id", "=", id).execute();

export interface DisputeClose {
  status: "inquiry_closed" | "won" | "lost";
  feeMinor: bigint;
  lostMinor?: bigint;
  excessMinor?: bigint;
  closedAt: Date;
}

/** Also releases the hold. */
export const closeDispute = (tx: Tx, providersId: string, close: DisputeClose) =>
  tx
    .updateTable("disputes")
    .set({ ...close, heldMinor: 0n })
    .where("providerDisputeId", "=", providersId)
    .execute();
