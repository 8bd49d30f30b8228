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

/** A text for each of the sums, or for those that are named. */
export const eachColumn = (text: (column: string) => string, names: readonly string[] = saleSums) =>
  sql.raw(names.map(text).join(", "));

/**
 * What the ledger and the receipts say of those sums: rows to be added up, one for each completed order and for each entry of whoever
 * shares in one. `received` is what receipts say of `gross`.
 */
const SALES = sql`
  select o.seller_id, o.product_id, o.referrer_id, e.currency, t.occurred_at as moved_at, 0::bigint as sales,
         case when t.kind = 'sale' and e.account <> 'tax_payable' then e.amount_minor else 0 end as gross,
         0::bigint as discounts,
         case when t.kind = 'refund' and e.account <> 'tax_payable' then -e.amount_minor else 0 end as refunds,
         case when t.kind like 'dispute%' and e.account <> 'tax_payable' then -e.amount_minor else 0 end as disputes,
         case e.account when 'tax_payable' then e.amount_minor else 0 end as tax,
         case e.account when 'platform_revenue' then e.amount_minor else 0 end as fees,
         case e.account when 'referrer' then e.amount_minor else 0 end as commissions,
         case e.account when 'seller' then e.amount_minor else 0 end as net,
         0::bigint as received
    from ledger_transactions t join ledger_entries e on e.transaction_id = t.id join orders o on o.id = e.order_id
   where t.kind in ('sale', 'refund', 'dispute_opened', 'dispute_won', 'dispute_lost')
     and e.account in ('tax_payable', 'platform_revenue', 'referrer', 'seller')
  union all
  select seller_id, product_id, referrer_id, currency, completed_at, 1, 0, discount_minor, 0, 0, 0, 0, 0, 0, total_minor - tax_minor
    from orders where completed_at is not null`;

/** What is held against the sums: gross twice, by the ledger and by the receipts. */
export const verifiedSums = [...saleSums, "received"] as const;

const SUM_COLUMNS = eachColumn((name) => `sum_bigint(${name}) as ${name}`, verifiedSums);

/** The same by quarters of an hour, once for each scope of sales_sums: still to be added up, a row for each product and referrer. */
export const SALES_BY_QUARTER_HOUR = sql`
  select q.seller_id, whose.scope, whose.of_id, q.currency, q.starts_at, ${eachColumn((name) => `q.${name}`, verifiedSums)}
    from (select seller_id, product_id, referrer_id, currency, date_bin('15 minutes', moved_at, 'epoch') as starts_at, ${SUM_COLUMNS}
            from (${SALES}) as sold group by 1, 2, 3, 4, 5) as q
   cross join lateral (values ('all', seller_id), ('product', product_id), ('referrer', referrer_id)) as whose (scope, of_id)
   where whose.of_id is not null`;

/** Of what starts at `starts_at`, the day and the month of UTC. A day by its length: `date_trunc` looks up a time zone for each row. */
export const DAY_OF = sql`date_bin('1 day', starts_at, 'epoch')`;
export const MONTH_OF = sql`date_trunc('month', starts_at, 'UTC')`;
