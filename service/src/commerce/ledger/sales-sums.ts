import { sql } from "kysely";

/** The amount columns of sales_sums, which analytics reads. */
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

export const eachColumn = (text: (column: string) => string, names: readonly string[] = saleSums) =>
  sql.raw(names.map(text).join(", "));

/**
 * The expected movements by ledger and receipts: one row for each completed order and each entry of a share. `received` is the gross
 * amount by receipts.
 */
export const SALES = sql`
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

/** `gross` is verified twice: against the ledger and against the receipts. */
export const verifiedSums = [...saleSums, "received"] as const;

const SUM_COLUMNS = eachColumn((name) => `sum_bigint(${name}) as ${name}`, verifiedSums);

export const SALES_BY_QUARTER_HOUR = sql`
  select q.seller_id, whose.scope, whose.of_id, q.currency, q.starts_at, ${eachColumn((name) => `q.${name}`, verifiedSums)}
    from (select seller_id, product_id, referrer_id, currency, date_bin('15 minutes', moved_at, 'epoch') as starts_at, ${SUM_COLUMNS}
            from (${SALES}) as sold group by 1, 2, 3, 4, 5) as q
   cross join lateral (values ('all', seller_id), ('product', product_id), ('referrer', referrer_id)) as whose (scope, of_id)
   where whose.of_id is not null`;

/** `date_bin` for days: `date_trunc` looks up the time zone for each row. */
export const DAY_OF = sql`date_bin('1 day', starts_at, 'epoch')`;
export const MONTH_OF = sql`date_trunc('month', starts_at, 'UTC')`;
export const YEAR_OF = sql`date_trunc('year', starts_at, 'UTC')`;
export const HOUR_OF = sql`date_bin('1 hour', starts_at, 'epoch')`;
