import { sql } from "kysely";

/** The sums that analytics keeps of what is sold, by their columns in sales_sums. */
export const saleSums = [
  "sales",
  "gross",
  "discounts",
  "refunds",
  "disputes",
  "tax",
  "fees",
  "commissions",
  "net",
] as const;

/**
 * What the books and the receipts say of those sums: rows to be added up, one for each completed order and for each entry of whoever
 * shares in one. `received` is what receipts say of `gross`.
 */
const SOLD = sql`
  select o.seller_id, o.product_id, o.referrer_id, moved.*
    from (select e.order_id, e.currency, t.occurred_at as moved_at, 0::bigint as sales, 0::bigint as discounts,
                 case when t.kind = 'sale' and e.account <> 'tax_payable' then e.amount_minor else 0 end as gross,
                 case when t.kind = 'refund' and e.account <> 'tax_payable' then -e.amount_minor else 0 end as refunds,
                 case when t.kind like 'dispute%' and e.account <> 'tax_payable' then -e.amount_minor else 0 end as disputes,
                 case e.account when 'tax_payable' then e.amount_minor else 0 end as tax,
                 case e.account when 'platform_revenue' then e.amount_minor else 0 end as fees,
                 case e.account when 'referrer' then e.amount_minor else 0 end as commissions,
                 case e.account when 'seller' then e.amount_minor else 0 end as net,
                 0::bigint as received
            from ledger_transactions t join ledger_entries e on e.transaction_id = t.id
           where t.kind in ('sale', 'refund', 'dispute_opened', 'dispute_won', 'dispute_lost')
             and e.account in ('tax_payable', 'platform_revenue', 'referrer', 'seller')
          union all
          select id, currency, completed_at, 1, discount_minor, 0, 0, 0, 0, 0, 0, 0, total_minor - tax_minor
            from orders where completed_at is not null) as moved
    join orders o on o.id = moved.order_id`;

const summed = sql.raw([...saleSums, "received"].map((name) => `sum(${name})::bigint as ${name}`).join(", "));

/** The same by quarters of an hour, for each scope of sales_sums. */
export const SOLD_BY_QUARTERS = sql`
  select q.seller_id, whose.scope, whose.of_id, q.currency, q.starts_at, ${summed}
    from (select seller_id, product_id, referrer_id, currency, date_bin('15 minutes', moved_at, 'epoch') as starts_at, ${summed}
            from (${SOLD}) as sold group by 1, 2, 3, 4, 5) as q
   cross join lateral (values ('all', seller_id), ('product', product_id), ('referrer', referrer_id)) as whose (scope, of_id)
   where whose.of_id is not null
   group by 1, 2, 3, 4, 5`;
