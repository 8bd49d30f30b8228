import { type RawBuilder, sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Tx } from "../../platform/db/database.ts";
import { hasSqlState, NUMERIC_VALUE_OUT_OF_RANGE } from "../../platform/db/sql-state.ts";
import { accounts } from "./ledger.ts";
import { LOST_SHARES } from "./shares.ts";

/** At most this many problems of a kind are listed; `total` counts all. */
const MAX_REPORTED = 100;
export type Found<Row> = Row & { total: number };

/** Materialized: otherwise the planner expects many problems and reads tables in index order to avoid a sort. */
export async function listFirst<Row>(tx: Tx, problems: RawBuilder<Row>): Promise<Found<Row>[]> {
  const { rows } = await sql<Found<Row>>`
    with problems as materialized (${problems})
    select *, count(*) over () as total from problems order by 1, 2 limit ${MAX_REPORTED}`.execute(tx);
  return rows;
}

/** For sums, which may exceed bigint. The savepoint keeps the transaction usable after the error. */
export async function fallbackIfOutOfRange<T>(tx: Tx, work: () => Promise<T>, fallback: T): Promise<T> {
  await sql`savepoint within_range`.execute(tx);
  try {
    const result = await work();
    await sql`release savepoint within_range`.execute(tx);
    return result;
  } catch (error) {
    if (!hasSqlState(error, NUMERIC_VALUE_OUT_OF_RANGE)) throw error;
    await sql`rollback to savepoint within_range`.execute(tx);
    return fallback;
  }
}

/** No timeout, and enough memory to hash the ledger. */
export const raiseTransactionLimits = (tx: Tx) =>
  sql`select set_config('statement_timeout', '0', true), set_config('work_mem', '128MB', true)`.execute(tx);

export async function countLedgerRows(tx: Tx): Promise<{ transactions: number; entries: number }> {
  const { rows } = await sql<{ transactions: number; entries: number }>`
    select (select count(*) from ledger_transactions) as transactions,
           (select count(*) from ledger_entries) as entries`.execute(tx);
  return firstOf(rows);
}

export interface Unbalanced {
  transactionId: string;
  /** null: entries exist without their transaction. */
  kind: string | null;
  entryCount: number | null;
  entries: number;
  /** Currencies whose entries do not sum to zero. */
  currencies: string[] | null;
  /** Currencies in which an account has two entries, which could hide any amount. */
  repeating: string[] | null;
}

/** Counts the distinct accounts: one bit each. */
const ACCOUNT_COUNT = sql`bit_count(bit_or(1 << array_position(${[...accounts]}::text[], account))::bit(16))`;

export const listUnbalanced = (tx: Tx) =>
  listFirst(
    tx,
    sql<Unbalanced>`
      select coalesce(t.id, e.transaction_id) as "transactionId", t.kind, t.entry_count,
             coalesce(e.entries, 0) as entries, e.currencies, e.repeating
        from ledger_transactions t
        full join (select transaction_id, sum_bigint(entries) as entries,
                          array_agg(currency) filter (where amount <> 0) as currencies,
                          array_agg(currency) filter (where repeats) as repeating
                     from (select transaction_id, currency, count(*) as entries, sum(amount_minor) as amount,
                                  count(*) > ${ACCOUNT_COUNT} as repeats
                             from ledger_entries group by transaction_id, currency) as sums
                    group by transaction_id) as e on e.transaction_id = t.id
       where e.entries is distinct from t.entry_count or e.currencies is not null or e.repeating is not null`,
  );

/** An account whose entries differ from the rows of orders, refunds, disputes, payouts or payments. */
export interface Difference {
  sourceId: string;
  kind: string;
  account: string;
  ownerId: string | null;
  currency: string;
  due: string;
  booked: string;
}

/** Both have the columns kind, source_id, account, owner_id, currency, amount; `before` is a shared `with` clause. */
export const listDifferences = (
  tx: Tx,
  due: RawBuilder<unknown>,
  booked: RawBuilder<unknown>,
  before: RawBuilder<unknown> = sql``,
) =>
  listFirst(
    tx,
    sql<Difference>`
      ${before} select source_id, kind, account, owner_id, currency,
             sum(due)::text as due, sum(booked)::text as booked
        from (select kind, source_id, account, owner_id, currency, amount as due, 0::bigint as booked
                from (${due}) as due
              union all
              select kind, source_id, account, owner_id, currency, 0::bigint, amount from (${booked}) as booked) as both_sides
       group by kind, source_id, account, owner_id, currency
      having sum(due) <> sum(booked)`,
  );

export const ENTRIES = sql`ledger_transactions t join ledger_entries e on e.transaction_id = t.id`;
export const ENTRY = sql`t.kind, t.source_id, e.account, e.owner_id, e.currency, e.amount_minor as amount`;

/** Verifies the total of each refund; `listWrongShares` verifies who bears it. A returned refund becomes credit of the buyer. */
export const listWrongRefunds = (tx: Tx) =>
  listDifferences(
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
         where r.returned_at is not null
        union all
        select 'refund_settled', r.id, side.account, side.owner_id, r.currency, side.amount
          from refunds r
          join orders o on o.id = r.order_id
         cross join lateral (values ('bank', null::uuid, r.amount_minor), ('buyer_credit', o.buyer_id, -r.amount_minor))
               as side (account, owner_id, amount)
         where r.settled_at is not null`,
    sql`select t.kind, t.source_id, case e.account when 'provider_clearing' then e.account else 'shares' end as account,
               null::uuid as owner_id, e.currency, e.amount_minor as amount
          from ${ENTRIES} where t.kind = 'refund'
        union all
        select ${ENTRY} from ${ENTRIES} where t.kind in ('refund_returned', 'refund_settled')`,
  );

/**
 * The hold of an order equals the held amounts of its open disputes. A lost dispute debits its hold and the provider's fee; the excess is
 * the marketplace's loss.
 */
export const listWrongDisputes = (tx: Tx) =>
  listDifferences(
    tx,
    sql`select 'held' as kind, d.order_id as source_id, 'dispute_hold' as account, null::uuid as owner_id, o.currency,
               d.held_minor as amount
          from disputes d join orders o on o.id = d.order_id where d.status = 'open'
        union all
        select 'dispute_lost', d.id, side.account, side.owner_id, o.currency, side.amount
          from disputes d
          join orders o on o.id = d.order_id
         cross join lateral (values
           ('seller', o.seller_id, -d.fee_minor),
           ('dispute_hold', null, d.excess_minor - d.lost_minor),
           ('dispute_losses', null, -d.excess_minor),
           ('provider_clearing', null, d.lost_minor + d.fee_minor)) as side (account, owner_id, amount)
         where d.status = 'lost' and side.amount <> 0`,
    sql`select 'held' as kind, e.order_id as source_id, e.account, e.owner_id, e.currency, e.amount_minor as amount
          from ledger_entries e where e.account = 'dispute_hold' and e.order_id is not null
        union all
        select ${ENTRY} from ${ENTRIES} where t.kind = 'dispute_lost'`,
  );

const ORDER_PARTS = sql`o.seller_id, o.referrer_id, o.currency, o.total_minor, o.tax_minor, o.fee_minor, o.commission_minor`;

/** Verifies the share of each account in all refunds and disputes of an order together. */
export const listWrongShares = (tx: Tx) =>
  listDifferences(
    tx,
    sql`select 'taken_back' as kind, o.id as source_id, part.account, part.owner_id, o.currency, -part.amount::bigint as amount
          from (select o.*, o.refunded_minor + coalesce(d.held, 0) as gone from orders o
                  left join (select order_id, sum(held_minor) as held from disputes
                              where status = 'open' group by order_id) as d on d.order_id = o.id) as o
         ${LOST_SHARES}
         where o.gone > 0 and part.amount <> 0`,
    sql`select 'taken_back' as kind, e.order_id as source_id, e.account, e.owner_id, e.currency, e.amount_minor as amount
          from ${ENTRIES}
         where t.kind in ('refund', 'dispute_opened', 'dispute_won') and e.order_id is not null
           and e.account in ('platform_revenue', 'tax_payable', 'seller', 'referrer')`,
  );

/**
 * Verifies each refund and dispute in booking order. A refund first uses what is left of the order, then disputes' holds; a won dispute
 * releases its hold.
 */
export const listWrongDebits = (tx: Tx) =>
  listDifferences(
    tx,
    sql`with takings as (
          select t.kind, t.source_id, t.number, coalesce(r.order_id, d.order_id) as order_id,
                 coalesce(r.amount_minor, d.amount_minor) as asked,
                 sum(e.amount_minor) filter (where e.account = 'dispute_hold'
                                               or (e.account = 'provider_clearing' and t.kind = 'refund')) as taken
            from ${ENTRIES}
            left join refunds r on t.kind = 'refund' and r.id = t.source_id
            left join disputes d on t.kind <> 'refund' and d.id = t.source_id
           where t.kind in ('refund', 'dispute_opened', 'dispute_won')
           group by t.id, r.id, d.id),
        placed as (
          select *, coalesce(sum(taken) over (partition by order_id order by number
                                              rows between unbounded preceding and 1 preceding), 0) as before
            from takings),
        due as (
          select p.*, case kind when 'dispute_won' then taken else least(asked, o.total_minor - before) end as takes,
                 ${ORDER_PARTS}
            from placed p join orders o on o.id = p.order_id)
        select o.kind, o.source_id, part.account, part.owner_id, o.currency, (o.sign * part.amount)::bigint as amount
          from (select * from due cross join lateral (values (-1, before + takes), (1, before)) as side (sign, gone)
                 where gone <> 0) as o
         ${LOST_SHARES}
        union all
        select kind, source_id, 'dispute_hold', null, currency, case kind when 'refund' then takes - asked else takes end::bigint
          from due`,
    // `listWrongRefunds` verifies payments to the buyer; other checks report entries without a source.
    sql`select ${ENTRY} from ${ENTRIES}
         where (t.kind in ('dispute_opened', 'dispute_won') and t.source_id in (select id from disputes))
            or (t.kind = 'refund' and e.account <> 'provider_clearing' and t.source_id in (select id from refunds))`,
  );

export const listWrongPayments = (tx: Tx) =>
  listDifferences(
    tx,
    sql`select 'subscription' as kind, p.id as source_id, side.account, null::uuid as owner_id, p.currency, side.amount
          from subscription_payments p
         cross join lateral (values
           ('provider_clearing', coalesce(p.processor_fee_minor, 0) - p.amount_minor),
           ('processor_fees', -coalesce(p.processor_fee_minor, 0)),
           ('platform_revenue', p.amount_minor - p.tax_minor),
           ('tax_payable', p.tax_minor)) as side (account, amount)
         where p.status = 'completed' and side.amount <> 0`,
    sql`select ${ENTRY} from ${ENTRIES} where t.kind = 'subscription'`,
  );

/** Lost disputes reduce revenue and tax in proportion. The part beyond the payment is the marketplace's loss. */
export const listWrongPlanDisputes = (tx: Tx) =>
  listDifferences(
    tx,
    sql`select 'subscription_dispute_lost' as kind, d.id as source_id, side.account, null::uuid as owner_id, p.currency, side.amount
          from subscription_disputes d
          join subscription_payments p on p.id = d.payment_id
         cross join lateral (values
           ('provider_clearing', d.lost_minor + d.fee_minor),
           ('processor_fees', -d.fee_minor),
           ('shares', d.excess_minor - d.lost_minor),
           ('dispute_losses', -d.excess_minor)) as side (account, amount)
         where d.status = 'lost' and side.amount <> 0
        union all
        select 'plan_taken_back', id, side.account, null, currency, side.amount::bigint
          from (select p.*, sum(d.lost_minor) as lost, least(sum(d.lost_minor), p.amount_minor) as back
                  from subscription_payments p join subscription_disputes d on d.payment_id = p.id and d.status = 'lost'
                 group by p.id) as p
         cross join lateral (values
           ('tax_payable', -div(2 * p.tax_minor::numeric * p.back + p.amount_minor, 2 * p.amount_minor::numeric)),
           ('dispute_losses', p.back - p.lost)) as side (account, amount)
         where side.amount <> 0`,
    sql`select t.kind, t.source_id, case when e.account in ('platform_revenue', 'tax_payable') then 'shares' else e.account end
                 as account, e.owner_id, e.currency, e.amount_minor as amount
          from ${ENTRIES} where t.kind = 'subscription_dispute_lost'
        union all
        select 'plan_taken_back', d.payment_id, e.account, e.owner_id, e.currency, e.amount_minor
          from ${ENTRIES} join subscription_disputes d on d.id = t.source_id
         where t.kind = 'subscription_dispute_lost' and e.account in ('tax_payable', 'dispute_losses')`,
  );

export const listWrongPayouts = (tx: Tx) =>
  listDifferences(
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

export interface UnfoundedDispute {
  transactionId: string;
  kind: string;
  sourceId: string;
  /** The status of the dispute; null if it does not exist. */
  status: string | null;
}

/** Dispute bookings without a dispute or with another status. Other kinds without a source appear as a difference. */
export const listUnfoundedDisputes = (tx: Tx) =>
  listFirst(
    tx,
    sql<UnfoundedDispute>`
      select t.id as "transactionId", t.kind, t.source_id, d.status
        from ledger_transactions t left join disputes d on d.id = t.source_id
       where t.kind in ('dispute_opened', 'dispute_won', 'dispute_lost')
         and (d.id is null or t.kind not in ('dispute_opened', 'dispute_' || d.status))`,
  );

export interface StrayEntry {
  transactionId: string;
  position: number;
  kind: string;
  orderId: string | null;
  rightOrderId: string | null;
  maturesAt: Date | null;
  rightMaturesAt: Date | null;
}

/** Entries with a wrong order, or with a wrong maturity: that of the order, at once, or the epoch for payouts. */
export const listStrayEntries = (tx: Tx) =>
  listFirst(
    tx,
    sql<StrayEntry>`
      select * from (
        select t.id as "transactionId", e.position, t.kind, e.order_id as "orderId",
               case when t.kind = 'sale' then t.source_id else coalesce(r.order_id, d.order_id) end as "rightOrderId",
               e.matures_at as "maturesAt",
               case when e.matures_at is null then null
                    when t.kind in ('sale', 'refund', 'dispute_opened', 'dispute_won') then o.matures_at
                    when t.kind like 'payout%' then 'epoch'
                    else t.occurred_at end as "rightMaturesAt"
          from ${ENTRIES}
          left join refunds r on t.kind like 'refund%' and r.id = t.source_id
          left join disputes d on t.kind like 'dispute%' and d.id = t.source_id
          left join orders o on o.id = e.order_id) as entries
       where "orderId" is distinct from "rightOrderId" or "maturesAt" <> "rightMaturesAt"`,
  );
