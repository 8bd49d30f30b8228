import { type RawBuilder, sql } from "kysely";
import type { Tx } from "../db/database.ts";

/** Of problems of one kind, how many are told one by one; `total` says how many there are. */
const TOLD = 100;
export type Found<Row> = Row & { total: number };

async function firstOf<Row>(tx: Tx, problems: RawBuilder<Row>): Promise<Found<Row>[]> {
  const { rows } = await sql<Found<Row>>`
    select *, count(*) over () as total from (${problems}) as problems order by 1, 2 limit ${TOLD}`.execute(
    tx,
  );
  return rows;
}

/** All of the books are read once and again: in memory where that fits, without workers, which the service needs itself. */
export const allowTime = (tx: Tx) =>
  sql`select set_config('statement_timeout', '0', true), set_config('work_mem', '128MB', true),
             set_config('jit', 'off', true)`.execute(tx);

export async function countBooked(tx: Tx): Promise<{ transactions: number; entries: number }> {
  const { rows } = await sql<{ transactions: number; entries: number }>`
    select (select count(*) from ledger_transactions) as transactions,
           (select count(*) from ledger_entries) as entries`.execute(tx);
  return rows[0]!;
}

export interface Unbalanced {
  transactionId: string;
  kind: string;
  entryCount: number;
  entries: number;
  /** In which currencies it does not sum to zero. */
  currencies: string[] | null;
}

export const listUnbalanced = (tx: Tx) =>
  firstOf(
    tx,
    sql<Unbalanced>`
      select t.id as "transactionId", t.kind, t.entry_count as "entryCount",
             coalesce(e.entries, 0)::bigint as entries, e.currencies
        from ledger_transactions t
        left join (select transaction_id, sum(entries) as entries,
                          array_agg(currency order by currency) filter (where amount <> 0) as currencies
                     from (select transaction_id, currency, count(*) as entries, sum(amount_minor) as amount
                             from ledger_entries group by transaction_id, currency) as sums
                    group by transaction_id) as e on e.transaction_id = t.id
       where e.entries is distinct from t.entry_count or e.currencies is not null`,
  );

/** An account where a booking, or all bookings of an order together, differs from what the market's own rows say. */
export interface Difference {
  sourceId: string;
  kind: string;
  account: string;
  ownerId: string | null;
  currency: string;
  due: string;
  booked: string;
}

/** Both are rows of kind, source_id, account, owner_id, currency, amount. */
const differences = (tx: Tx, due: RawBuilder<unknown>, booked: RawBuilder<unknown>) =>
  firstOf(
    tx,
    sql<Difference>`
      select source_id as "sourceId", kind, account, owner_id as "ownerId", currency,
             sum(due)::text as due, sum(booked)::text as booked
        from (select kind, source_id, account, owner_id, currency, amount as due, 0::bigint as booked
                from (${due}) as due
              union all
              select kind, source_id, account, owner_id, currency, 0::bigint, amount from (${booked}) as booked) as both_sides
       group by kind, source_id, account, owner_id, currency
      having sum(due) <> sum(booked)`,
  );

const ENTRIES = sql`ledger_transactions t join ledger_entries e on e.transaction_id = t.id`;
const ENTRY = sql`t.kind, t.source_id, e.account, e.owner_id, e.currency, e.amount_minor as amount`;

/** Free copies have no amounts, and so nothing is due of them. */
export const listWrongSales = (tx: Tx) =>
  differences(
    tx,
    sql`select 'sale' as kind, o.id as source_id, part.account, part.owner_id, o.currency, part.amount
          from orders o
         cross join lateral (values
           ('provider_clearing', null::uuid, coalesce(o.processor_fee_minor, 0) - o.total_minor),
           ('processor_fees', null, -coalesce(o.processor_fee_minor, 0)),
           ('platform_revenue', null, o.fee_minor),
           ('tax_payable', null, o.tax_minor),
           ('seller', o.seller_id, o.seller_minor),
           ('referrer', o.referrer_id, o.commission_minor)) as part (account, owner_id, amount)
         where o.completed_at is not null and part.amount <> 0`,
    sql`select ${ENTRY} from ${ENTRIES} where t.kind = 'sale'`,
  );

/**
 * What each refund gives back in all; who bears it is asked of all that an order lost together. What a bank sent back is owed to the
 * buyer.
 */
export const listWrongRefunds = (tx: Tx) =>
  differences(
    tx,
    sql`select 'refund' as kind, r.id as source_id, side.account, null::uuid as owner_id, r.currency, side.amount
          from refunds r
         cross join lateral (values ('provider_clearing', r.amount_minor), ('shares', -r.amount_minor))
               as side (account, amount)
         where r.status = 'succeeded'
        union all
        select 'refund_returned', r.id, side.account, side.owner_id, r.currency, side.amount
          from refunds r
          join orders o on o.id = r.order_id
         cross join lateral (values ('provider_clearing', null::uuid, -r.amount_minor), ('buyer_credit', o.buyer_id, r.amount_minor))
               as side (account, owner_id, amount)
         where r.returned_at is not null`,
    sql`select t.kind, t.source_id, case e.account when 'provider_clearing' then e.account else 'shares' end as account,
               null::uuid as owner_id, e.currency, e.amount_minor as amount
          from ${ENTRIES} where t.kind = 'refund'
        union all
        select ${ENTRY} from ${ENTRIES} where t.kind = 'refund_returned'`,
  );

/**
 * What disputes hold of an order is what its open ones say, and no less: a refund that reached the buyer meanwhile took from them, and
 * what was decided is held no longer. A lost one costs the seller the provider's charge.
 */
export const listWrongDisputes = (tx: Tx) =>
  differences(
    tx,
    sql`select 'held' as kind, d.order_id as source_id, 'dispute_hold' as account, null::uuid as owner_id, o.currency,
               d.held_minor as amount
          from disputes d join orders o on o.id = d.order_id where d.status = 'open'
        union all
        select 'dispute_lost', d.id, side.account, side.owner_id, o.currency, side.amount
          from disputes d
          join orders o on o.id = d.order_id
         cross join lateral (values ('seller', o.seller_id, -d.fee_minor), ('provider_clearing', null, d.fee_minor))
               as side (account, owner_id, amount)
         where d.status = 'lost'`,
    sql`select 'held' as kind, e.order_id as source_id, e.account, e.owner_id, e.currency, e.amount_minor as amount
          from ledger_entries e where e.account = 'dispute_hold' and e.order_id is not null
        union all
        select t.kind, t.source_id, case e.account when 'dispute_hold' then 'provider_clearing' else e.account end,
               e.owner_id, e.currency, e.amount_minor
          from ${ENTRIES} where t.kind = 'dispute_lost'`,
  );

/** As splitRefund reckons it: the same share of `part` as `some` is of `whole`, a half rounded up. */
const proportion = (part: string, some: string, whole: string) =>
  sql.raw(
    `case ${part} when 0 then 0 else div(2 * (${part})::numeric * (${some}) + (${whole}), 2 * (${whole})::numeric) end`,
  );

/** What each who shares in an order lost of it by refunds and disputes: their part of all that was taken back by now. */
export const listWrongShares = (tx: Tx) =>
  differences(
    tx,
    sql`select 'taken_back' as kind, o.id as source_id, part.account, part.owner_id, o.currency, part.amount::bigint as amount
          from (select o.*, o.refunded_minor + coalesce(d.held, 0) as gone from orders o
                  left join (select order_id, sum(held_minor) as held from disputes
                              where status = 'open' group by order_id) as d on d.order_id = o.id) as o
         cross join lateral (select ${proportion("o.tax_minor", "o.gone", "o.total_minor")} as tax) as t
         cross join lateral (select o.gone - t.tax as net, o.total_minor - o.tax_minor as whole) as n
         cross join lateral (select ${proportion("o.fee_minor", "n.net", "n.whole")} as fee) as f
         cross join lateral (
           select ${proportion("o.commission_minor", "n.net - f.fee", "n.whole - o.fee_minor")} as commission) as c
         cross join lateral (values
           ('platform_revenue', null::uuid, -f.fee),
           ('tax_payable', null, -t.tax),
           ('seller', o.seller_id, -(n.net - f.fee - c.commission)),
           ('referrer', o.referrer_id, -c.commission)) as part (account, owner_id, amount)
         where o.gone > 0 and part.amount <> 0`,
    sql`select 'taken_back' as kind, e.order_id as source_id, e.account, e.owner_id, e.currency, e.amount_minor as amount
          from ${ENTRIES}
         where t.kind in ('refund', 'dispute_opened', 'dispute_won') and e.order_id is not null
           and e.account in ('platform_revenue', 'tax_payable', 'seller', 'referrer')`,
  );

/** Which part of it the provider kept stands in no other row: both accounts together are less by the amount. */
export const listWrongPayments = (tx: Tx) =>
  differences(
    tx,
    sql`select 'subscription' as kind, p.id as source_id, side.account, null::uuid as owner_id, p.currency, side.amount
          from subscription_payments p
         cross join lateral (values ('platform_revenue', p.amount_minor), ('provider_clearing', -p.amount_minor))
               as side (account, amount)
         where p.status = 'completed'`,
    sql`select t.kind, t.source_id, case e.account when 'processor_fees' then 'provider_clearing' else e.account end as account,
               e.owner_id, e.currency, e.amount_minor as amount
          from ${ENTRIES} where t.kind = 'subscription'`,
  );

export const listWrongPayouts = (tx: Tx) =>
  differences(
    tx,
    sql`select side.kind, p.id as source_id, side.account, side.owner_id, p.currency, side.amount
          from payouts p
         cross join lateral (values
           ('payout', 'seller', p.seller_id, p.commission_minor - p.amount_minor),
           ('payout', 'referrer', p.seller_id, -p.commission_minor),
           ('payout', 'in_transit', p.seller_id, p.amount_minor),
           ('payout_completed', 'in_transit', p.seller_id, -p.amount_minor),
           ('payout_completed', 'provider_clearing', null, p.amount_minor),
           ('payout_failed', 'in_transit', p.seller_id, -p.amount_minor),
           ('payout_failed', 'seller', p.seller_id, p.amount_minor - p.commission_minor),
           ('payout_failed', 'referrer', p.seller_id, p.commission_minor),
           ('payout_returned', 'provider_clearing', null, -p.amount_minor),
           ('payout_returned', 'seller', p.seller_id, p.amount_minor - p.commission_minor),
           ('payout_returned', 'referrer', p.seller_id, p.commission_minor)) as side (kind, account, owner_id, amount)
         where side.kind in ('payout', 'payout_' || p.status)
            or (side.kind = 'payout_completed' and p.status = 'returned')`,
    sql`select ${ENTRY} from ${ENTRIES}
         where t.kind in ('payout', 'payout_completed', 'payout_failed', 'payout_returned')`,
  );

export interface Unfounded {
  transactionId: string;
  kind: string;
  sourceId: string;
  /** Of the dispute that it is about; null: there is none. */
  status: string | null;
}

/** What is booked of disputes that are not there, or were not decided so. Of all else a booking without its row is a difference. */
export const listUnfounded = (tx: Tx) =>
  firstOf(
    tx,
    sql<Unfounded>`
      select t.id as "transactionId", t.kind, t.source_id as "sourceId", d.status
        from ledger_transactions t left join disputes d on d.id = t.source_id
       where t.kind in ('dispute_opened', 'dispute_won', 'dispute_lost')
         and (d.id is null or t.kind not in ('dispute_opened', 'dispute_' || d.status))`,
  );

export interface Stray {
  transactionId: string;
  position: number;
  kind: string;
  orderId: string | null;
  rightOrderId: string | null;
  maturesAt: Date | null;
  rightMaturesAt: Date | null;
}

/** Entries that name another order than their booking is about, or mature at another time than the order does. */
export const listStrays = (tx: Tx) =>
  firstOf(
    tx,
    sql<Stray>`
      select * from (
        select t.id as "transactionId", e.position, t.kind, e.order_id as "orderId",
               case when t.kind = 'sale' then t.source_id else coalesce(r.order_id, d.order_id) end as "rightOrderId",
               e.matures_at as "maturesAt",
               case when e.matures_at is not null and t.kind <> 'dispute_lost' then o.matures_at end as "rightMaturesAt"
          from ${ENTRIES}
          left join refunds r on t.kind in ('refund', 'refund_returned') and r.id = t.source_id
          left join disputes d on t.kind like 'dispute%' and d.id = t.source_id
          left join orders o on o.id = e.order_id) as entries
       where "orderId" is distinct from "rightOrderId" or "maturesAt" <> "rightMaturesAt"`,
  );

export interface WrongOrder {
  orderId: string;
  status: string;
  rightStatus: string;
  refunded: string;
  rightRefunded: string;
  refunding: string;
  rightRefunding: string;
  otherCurrency: boolean;
}

/** Orders whose state or amounts are not what their refunds and disputes make of them. */
export const listWrongOrders = (tx: Tx) =>
  firstOf(
    tx,
    sql<WrongOrder>`
      select * from (
        select o.id as "orderId", o.status,
               case when d.order_id is not null then 'disputed'
                    when back.amount is null then 'completed'
                    when back.amount = o.total_minor then 'refunded'
                    else 'partially_refunded' end as "rightStatus",
               o.refunded_minor::text as refunded, coalesce(back.amount, 0)::text as "rightRefunded",
               o.refunding_minor::text as refunding, coalesce(back.under_way, 0)::text as "rightRefunding",
               coalesce(back.currencies <> array[o.currency], false) as "otherCurrency"
          from orders o
          left join (select order_id, sum(amount) as amount, sum(under_way) as under_way,
                            array_agg(distinct currency) as currencies
                       from (select order_id, currency, case status when 'succeeded' then amount_minor end as amount,
                                    case when status in ('approved', 'processing') then amount_minor end as under_way
                               from refunds where status in ('approved', 'processing', 'succeeded')
                             union all
                             select e.order_id, e.currency, -e.amount_minor, null
                               from ${ENTRIES} where t.kind = 'dispute_lost' and e.account = 'dispute_hold') as movements
                      group by order_id) as back on back.order_id = o.id
          left join (select distinct order_id from disputes where status = 'open') as d on d.order_id = o.id
         where o.completed_at is not null) as orders
       where status <> "rightStatus" or refunded <> "rightRefunded" or refunding <> "rightRefunding" or "otherCurrency"`,
  );

export interface ReceiptGap {
  sellerId: string;
  year: number;
  receipts: number;
  lowest: number | null;
  highest: number | null;
  /** The last number that was given out. */
  last: number | null;
}

/** Years of sellers whose receipts are not numbered from 1 to the last number that was given out. */
export const listReceiptGaps = (tx: Tx) =>
  firstOf(
    tx,
    sql<ReceiptGap>`
      select seller_id as "sellerId", year, coalesce(receipts, 0) as receipts, lowest, highest, last
        from (select seller_id, receipt_year as year, count(*) as receipts, min(receipt_number) as lowest,
                     max(receipt_number) as highest
                from orders where receipt_number is not null group by 1, 2) as given
        full join receipt_counters using (seller_id, year)
       where (lowest, highest, receipts) is distinct from (1, last, last)`,
  );

export interface MisdatedReceipt {
  orderId: string;
  year: number;
  completedAt: Date | null;
}

/** Receipts that are counted in another year than the one in which the purchase was completed. */
export const listMisdatedReceipts = (tx: Tx) =>
  firstOf(
    tx,
    sql<MisdatedReceipt>`
      select id as "orderId", receipt_year as year, completed_at as "completedAt" from orders
       where completed_at is not null and extract(year from completed_at at time zone 'UTC') <> receipt_year`,
  );
