import { sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Tx } from "../../platform/db/database.ts";

type Status = "inquiry" | "inquiry_closed" | "open" | "won" | "lost";

export async function findPlanDispute(tx: Tx, providersId: string) {
  const row = await tx
    .selectFrom("subscriptionDisputes")
    .select(["id", "status", "closedAt"])
    .where("providerDisputeId", "=", providersId)
    .executeTakeFirst();
  return row as { id: string; status: Status; closedAt: Date | null } | undefined;
}

export interface NewPlanDispute {
  id: string;
  paymentId: string;
  providerDisputeId: string;
  status: Status;
  amountMinor: bigint;
  feeMinor: bigint;
  reason: string;
  answerBy: Date | null;
  openedAt: Date;
}

export const insertPlanDispute = (tx: Tx, dispute: NewPlanDispute) =>
  tx.insertInto("subscriptionDisputes").values(dispute).execute();

export interface PlanDisputeUpdate {
  status: Status;
  feeMinor?: bigint;
  lostMinor?: bigint;
  excessMinor?: bigint;
  closedAt?: Date | null;
}

export const updatePlanDispute = (tx: Tx, id: string, move: PlanDisputeUpdate) =>
  tx.updateTable("subscriptionDisputes").set(move).where("id", "=", id).execute();

export async function sumLostToDisputes(tx: Tx, paymentId: string): Promise<bigint> {
  const { rows } = await sql<{ taken: string }>`
    select coalesce(sum(lost_minor - excess_minor), 0)::text as taken from subscription_disputes
     where payment_id = ${paymentId} and status = 'lost'`.execute(tx);
  return BigInt(firstOf(rows).taken);
}
