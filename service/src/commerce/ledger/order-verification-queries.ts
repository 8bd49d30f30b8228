import { sql } from "kysely";
import type { Tx } from "../../platform/db/database.ts";
import { ENTRIES, listFirst } from "./verification-queries.ts";

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

/** Orders whose status or amounts differ from their refunds and disputes. */
export const listWrongOrders = (tx: Tx) =>
  listFirst(
    tx,
    sql<WrongOrder>`
      select * from (
        select o.id as "orderId", o.status,
               case when d.order_id is not null then 'disputed'
                    when o.completed_at is null and back.order_id is null then o.status
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
          left join (select distinct order_id from disputes where status = 'open') as d on d.order_id = o.id) as orders
       where status <> "rightStatus" or refunded <> "rightRefunded" or refunding <> "rightRefunding" or "otherCurrency"`,
  );

export interface WrongPart {
  orderId: string;
  part: string;
  currency: string;
  due: string;
  found: string;
}

const roundedHalfUp = (numerator: string, denominator: string) =>
  sql.raw(`div(2 * (${numerator})::numeric + (${denominator}), 2 * (${denominator}))`);

/** Orders with a tax, fee or commission that differs from their own rates; rounds as `splitSale` does. */
export const listWrongParts = (tx: Tx) =>
  listFirst(
    tx,
    sql<WrongPart>`
      select o.id as "orderId", part.name as part, o.currency, part.due::text as due, part.found::text as found
        from orders o
       cross join lateral (select case when o.tax_inclusive then 10000 + o.tax_basis_points else 10000 end as taxed,
                                  o.subtotal_minor - o.discount_minor as discounted, o.total_minor - o.tax_minor as net) as n
       cross join lateral (values
         ('tax', ${roundedHalfUp("n.discounted * o.tax_basis_points::numeric", "n.taxed")}, o.tax_minor),
         ('fee', ${roundedHalfUp("n.net * o.fee_basis_points::numeric", "10000")}, o.fee_minor),
         ('commission', least(${roundedHalfUp("n.net * o.commission_basis_points::numeric", "10000")}, n.net - o.fee_minor),
          o.commission_minor)) as part (name, due, found)
       where part.due <> part.found`,
  );

export interface WrongTax {
  paymentId: string;
  currency: string;
  due: string;
  found: string;
}

export const listWrongTaxes = (tx: Tx) =>
  listFirst(
    tx,
    sql<WrongTax>`
      select p.id as "paymentId", p.currency, n.due::text as due, p.tax_minor::text as found
        from subscription_payments p
       cross join lateral (select case when p.tax_inclusive then 10000 + p.tax_basis_points else 10000 end as taxed,
                                  p.price_minor - p.credit_minor as discounted) as r
       cross join lateral (select ${roundedHalfUp("r.discounted * p.tax_basis_points::numeric", "r.taxed")} as due) as n
       where n.due <> p.tax_minor`,
  );

export interface WrongEntitlement {
  orderId: string;
  status: string | null;
  rightStatus: string | null;
  /** The entitlement has another buyer, product or major version than the order. */
  isOthers: boolean;
}

/**
 * Orders whose entitlement differs from their refunded and reserved amounts. An order that the service refunded automatically may have no
 * entitlement.
 */
export const listWrongEntitlements = (tx: Tx) =>
  listFirst(
    tx,
    sql<WrongEntitlement>`
      select * from (
        select o.id as "orderId", e.status,
               case when o.completed_at is null then null
                    when o.total_minor = 0 or o.refunded_minor + o.refunding_minor < o.total_minor then 'active'
                    when o.refunding_minor > 0 then 'held'
                    else 'revoked' end as "rightStatus",
               coalesce((e.buyer_id, e.product_id, e.major::text)
                        <> (o.buyer_id, o.product_id, split_part(o.product_version, '.', 1)), false) as "isOthers"
          from orders o left join entitlements e on e.order_id = o.id) as used
       where (status is distinct from "rightStatus"
              and not (status is null and exists (select from refunds r where r.order_id = "orderId" and r.origin = 'service')))
          or "isOthers"`,
  );

export interface Miscount {
  counter: "discount code" | "product";
  id: string;
  counted: string;
  found: string;
}

export const listMiscounts = (tx: Tx) =>
  listFirst(
    tx,
    sql<Miscount>`
      select 'discount code' as counter, c.id, c.redemptions::text as counted, coalesce(held.orders, 0)::text as found
        from discount_codes c
        left join (select discount_code_id, count(*) as orders from orders
                    where discount_code_id is not null and holds_discount_code(status) group by 1) as held
          on held.discount_code_id = c.id
       where c.redemptions <> coalesce(held.orders, 0)
      union all
      select 'product', product_id, coalesce(s.purchases, 0)::text, coalesce(live.buyers, 0)::text
        from product_stats s
        full join (select product_id, count(*) as buyers from entitlements where status <> 'revoked' group by 1) as live
       using (product_id)
       where coalesce(s.purchases, 0) <> coalesce(live.buyers, 0)`,
  );

export interface ReceiptGap {
  /** null: the marketplace itself, which issues receipts for plans. */
  sellerId: string | null;
  year: number;
  receipts: number;
  lowest: number | null;
  highest: number | null;
  last: number | null;
}

const NUMBERS = sql`count(*) as receipts, min(receipt_number) as lowest, max(receipt_number) as highest`;

/** Years whose receipts are not numbered from 1 to the counter without gaps, for each seller and for plans. */
export const listReceiptGaps = (tx: Tx) =>
  listFirst(
    tx,
    sql<ReceiptGap>`
      select seller_id, year, coalesce(receipts, 0) as receipts, lowest, highest, last
        from (select seller_id, year, receipts, lowest, highest, last
                from (select seller_id, receipt_year as year, ${NUMBERS}
                        from orders where receipt_number is not null group by 1, 2) as given
                full join receipt_counters using (seller_id, year)
              union all
              select null::uuid, year, receipts, lowest, highest, last
                from (select receipt_year as year, ${NUMBERS}
                        from subscription_payments where receipt_number is not null group by 1) as given
                full join subscription_receipt_counters using (year)) as years
       where (lowest, highest, receipts) is distinct from (1, last, last)`,
  );

export interface MisdatedReceipt {
  kind: "order" | "payment";
  sourceId: string;
  year: number;
  completedAt: Date | null;
}

/** Receipts numbered in another year than that of the payment. */
export const listMisdatedReceipts = (tx: Tx) =>
  listFirst(
    tx,
    sql<MisdatedReceipt>`
      select id as "sourceId", 'order' as kind, receipt_year as year, completed_at from orders
       where completed_at is not null and extract(year from completed_at at time zone 'UTC') <> receipt_year
      union all
      select id, 'payment', receipt_year, settled_at from subscription_payments
       where status = 'completed' and extract(year from settled_at at time zone 'UTC') <> receipt_year`,
  );
