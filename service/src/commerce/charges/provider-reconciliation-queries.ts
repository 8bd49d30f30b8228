import type { Insertable } from "kysely";
import { sql } from "kysely";
import type { Queries } from "../../platform/db/database.ts";
import type { ProviderReconciliations } from "../../platform/db/tables.gen.ts";
import type { BookedKind } from "./provider-reconciliation.ts";

/** Amounts come as text: a sum may exceed the safe integers of a number. */
type Texts<Row> = { [Name in keyof Row]: Name extends `${string}Minor` ? string | null : Row[Name] };

const toBigints = <Row extends object>(row: Texts<Row>): Row =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      name.endsWith("Minor") && value !== null ? BigInt(value as string) : value,
    ]),
  ) as Row;

export interface ChargedRow {
  id: string;
  status: string;
  isBooked: boolean;
  amountMinor: bigint;
  currency: string;
  feeMinor: bigint | null;
}

export async function findChargedRows(db: Queries, ids: string[]): Promise<Map<string, ChargedRow>> {
  const { rows } = await sql<Texts<ChargedRow>>`
    select id, status, completed_at is not null as "isBooked", total_minor::text as "amountMinor", currency,
           processor_fee_minor::text as "feeMinor"
      from orders where id = any (${ids}::uuid[])
    union all
    select id, status, status = 'completed', amount_minor::text, currency, processor_fee_minor::text
      from subscription_payments where id = any (${ids}::uuid[])`.execute(db);
  return new Map(rows.map((row) => [row.id, toBigints(row)]));
}

export interface RefundedRow {
  id: string;
  providerRefundId: string | null;
  status: string;
  isReturned: boolean;
  amountMinor: bigint;
  currency: string;
}

/** Refunds from the provider's dashboard are found by the provider's ids, others by ours. */
export async function findRefundedRows(
  db: Queries,
  ids: string[],
  providersIds: string[],
): Promise<RefundedRow[]> {
  const { rows } = await sql<Texts<RefundedRow>>`
    select id, case origin when 'provider' then provider_refund_id end as "providerRefundId", status,
           returned_at is not null as "isReturned", amount_minor::text as "amountMinor", currency
      from refunds
     where id = any (${ids}::uuid[]) or (origin = 'provider' and provider_refund_id = any (${providersIds}::text[]))`.execute(
    db,
  );
  return rows.map((row) => toBigints(row));
}

export interface DisputedRow {
  providersId: string;
  status: string;
  lostMinor: bigint | null;
  feeMinor: bigint;
  currency: string;
}

export async function findDisputedRows(
  db: Queries,
  providersIds: string[],
): Promise<Map<string, DisputedRow>> {
  const { rows } = await sql<Texts<DisputedRow>>`
    select d.provider_dispute_id as "providersId", d.status, d.lost_minor::text as "lostMinor",
           d.fee_minor::text as "feeMinor", o.currency
      from disputes d join orders o on o.id = d.order_id where d.provider_dispute_id = any (${providersIds}::text[])
    union all
    select d.provider_dispute_id, d.status, d.lost_minor::text, d.fee_minor::text, p.currency
      from subscription_disputes d join subscription_payments p on p.id = d.payment_id
     where d.provider_dispute_id = any (${providersIds}::text[])`.execute(db);
  return new Map(rows.map((row) => [row.providersId, toBigints(row)]));
}

export interface PaidOutRow {
  id: string;
  status: string;
  amountMinor: bigint;
  currency: string;
}

export async function findPaidOutRows(db: Queries, ids: string[]): Promise<Map<string, PaidOutRow>> {
  const { rows } = await sql<Texts<PaidOutRow>>`
    select id, status, amount_minor::text as "amountMinor", currency from payouts where id = any (${ids}::uuid[])`.execute(
    db,
  );
  return new Map(rows.map((row) => [row.id, toBigints(row)]));
}

interface Booked {
  kind: BookedKind;
  id: string;
  providersId: string | null;
}

/** Disputes and dashboard refunds may be older at the provider than here, so only a comparison from the beginning includes them. */
export async function listBookedSince(db: Queries, since: Date, until: Date): Promise<Booked[]> {
  const { rows } = await sql<Booked>`
    select 'order' as kind, id, null as "providersId" from orders
     where completed_at <= ${until} and total_minor > 0 and created_at >= ${since}
    union all
    select 'plan payment', id, null from subscription_payments
     where status = 'completed' and settled_at <= ${until} and created_at >= ${since}
    union all
    select 'refund', id, null from refunds
     where status = 'succeeded' and returned_at is null and completed_at <= ${until}
       and (created_at >= ${since} and origin <> 'provider' or ${since} <= 'epoch'::timestamptz)
    union all
    select 'payout', id, null from payouts
     where status in ('in_transit', 'completed') and created_at between ${since} and ${until}
    union all
    select 'dispute', id, provider_dispute_id from disputes where ${since} <= 'epoch'::timestamptz
    union all
    select 'dispute', id, provider_dispute_id from subscription_disputes where ${since} <= 'epoch'::timestamptz
     order by 1, 2`.execute(db);
  return rows;
}

export const insertReconciliation = (db: Queries, row: Insertable<ProviderReconciliations>) =>
  db.insertInto("providerReconciliations").values(row).execute();

export const findLastReconciliation = (db: Queries) =>
  db
    .selectFrom("providerReconciliations")
    .select(["endedAt", "compared", "differences", "examples"])
    .orderBy("begunAt", "desc")
    .limit(1)
    .executeTakeFirst();
