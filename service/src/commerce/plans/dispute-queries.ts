import { sql } from "kysely";
import type { Tx } from "../../platform/db/database.ts";

type Status = "inquiry" | "inquiry_closed" | "open" | "won" | "lost";

export async function findPlanDispute(tx: Tx, providersId: string) {
  const row = await tx
    .selectFrom("subscription_disputes")
    .select(["id", "status", "closed_at as closedAt"])
    .where("provider_dispute_id", "=", providersId)
    .executeTakeFirst();
  return row as { id: string; status: Status; closedAt: Date | null } | undefined;
}

export interface NewPlanDispute {
  id: string;
  payment_id: string;
  provider_dispute_id: string;
  status: Status;
  amount_minor: bigint;
  fee_minor: bigint;
  reason: string;
  answer_by: Date | null;
  opened_at: Date;
}

export const insertPlanDispute = (tx: Tx, dispute: NewPlanDispute) =>
  tx.insertInto("subscription_disputes").values(dispute).execute();

export interface PlanDisputeUpdate {
  status: Status;
  fee_minor?: bigint;
  lost_minor?: bigint;
  excess_minor?: bigint;
  closed_at?: Date | null;
}

export const updatePlanDispute = (tx: Tx, id: string, move: PlanDisputeUpdate) =>
  tx.updateTable("subscription_disputes").set(move).where("id", "=", id).execute();

/** What lost disputes took of a payment. */
export async function sumLostToDisputes(tx: Tx, paymentId: string): Promise<bigint> {
  const { rows } = await sql<{ taken: string }>`
    select coalesce(sum(lost_minor - excess_minor), 0)::text as taken from subscription_disputes
     where payment_id = ${paymentId} and status = 'lost'`.execute(tx);
  return BigInt(rows[0]!.taken);
}
