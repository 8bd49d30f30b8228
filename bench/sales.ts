import { idOf, insertTransactions } from "./ledger-data.ts";

export const SELLERS = 1_000;
const YEARS = 5;
const DAYS = 365 * YEARS + 1;
const BUYERS = 50_000;
/** Products of the seller with a tenth of all orders, and of each other seller. */
export const PRODUCTS_OF_ONE = 200;
const PRODUCTS_OF_OTHERS = 5;
const REFUNDED_EVERY = 20;
const RUN_EVERY = 2;
/** Views of other sellers' products exist for this many days; the first seller's views show their cost. */
const VIEW_DAYS = 60;

export const sellerId = (nth: number) => idOf("seller", `'${nth}'`);
export const productId = (nth: number) => idOf("product", `'${nth}'`);

/**
 * SQL for an empty market with orders over five years, evenly. A tenth is the first seller's. A few buyers buy often,
 * many buy once. One in ten came by a referrer, one in nine paid in euros, one in twenty was refunded. Every second
 * buyer ran the product once, an hour later.
 */
export function soldMarket(orders: number): string[] {
  return [...people, ...products, ...sales(orders), ...refunds, ...runs, ...views];
}

const people = [
  `insert into users (id, email, name, role, created_at)
   select ${idOf("seller", "n")}, 'seller' || n || '@bench.example', 'Seller ' || n, 'seller', now() - interval '6 years'
     from generate_series(1, ${SELLERS}) n`,
  `insert into users (id, email, name, created_at)
   select ${idOf("buyer", "n")}, 'buyer' || n || '@bench.example', 'Buyer ' || n, now() - interval '6 years'
     from generate_series(0, ${BUYERS - 1}) n`,
  `insert into referral_codes (user_id, code, created_at)
   select ${idOf("seller", "n")}, 'SELLER' || n, now() - interval '6 years' from generate_series(1, 50) n`,
];

/** The first seller's products come first. */
const products = [
  `insert into products (id, author_id, title, description, type, status, category, price_minor, currency, compatibility, tags,
                         requirements, features, models, preview, version, card, created_at, updated_at, moved_at)
   select ${idOf("product", "n")}, ${idOf("seller", `case when n <= ${PRODUCTS_OF_ONE} then 1 else 2 + (n - ${PRODUCTS_OF_ONE + 1}) % ${SELLERS - 1} end`)},
          'Product ' || n, '', 'PROMPT', 'unpublished', (select slug from categories order by slug offset n % 8 limit 1),
          1999, 'USD', '{}', '{}', '{}', '{}', '{}', '', '1.0.0', '{}', at, at, at
     from (select n, now() - interval '6 years' as at
             from generate_series(1, ${PRODUCTS_OF_ONE + (SELLERS - 1) * PRODUCTS_OF_OTHERS}) n) as made`,
];

/** A number from 0 to 1 per order: deterministic, so that every run has the same data. */
const spread = (n: string, prime: number) => `((${n}::bigint * ${prime}) % 1000003)::float8 / 1000003`;
const isOfOne = "n % 10 = 0";
const seller = `case when ${isOfOne} then 1 else 2 + (n * 31 + n / 10) % ${SELLERS - 1} end`;
const product = `case when ${isOfOne} then 1 + floor(${PRODUCTS_OF_ONE} * (${spread("n", 7919)}) ^ 2)::int
                      else ${PRODUCTS_OF_ONE + 1} + seller - 2 + ${SELLERS - 1} * (n / 10 % ${PRODUCTS_OF_OTHERS}) end`;

/** A tenth for the platform, a tenth for the referrer, 30 cents for the provider; each sale matures after two weeks. */
const sales = (orders: number) => [
  `insert into orders (id, buyer_id, seller_id, product_id, buyer_name, buyer_email, seller_name, product_title, product_type,
                       product_version, status, subtotal_minor, total_minor, fee_minor, commission_minor, seller_minor, fee_basis_points,
                       commission_basis_points, referrer_id, referral_code, processor_fee_minor, currency, refund_days,
                       payment_method_id, created_at, completed_at, matures_at, receipt_year, receipt_number)
   select ${idOf("order", "n")}, ${idOf("buyer", "buyer")}, ${idOf("seller", "seller")}, ${idOf("product", "product")},
          'Buyer ' || buyer, 'buyer' || buyer || '@bench.example', 'Seller ' || seller, 'Product ' || product, 'PROMPT', '1.0.0',
          'completed', price, price, fee, commission, price - fee - commission, 1000, case when referrer is null then 0 else 1000 end,
          ${idOf("seller", "referrer")}, 'SELLER' || referrer, 30, currency, 14, 'pm_test_ok', sold_at, sold_at,
          sold_at + interval '14 days', year, row_number() over (partition by seller, year order by n)
     from (select *, ${product} as product, (price + 5) / 10 as fee, case when referrer is null then 0 else (price + 5) / 10 end as commission,
                  extract(year from sold_at at time zone 'UTC') as year
             from (select n, ${seller} as seller, floor(${BUYERS} * (${spread("n", 104_729)}) ^ 2)::int as buyer, 100 + n % 5000 as price,
                          case when n / 10 % 10 = 3 then 1 + n / 100 % 50 end as referrer,
                          case n / 10 % 9 when 5 then 'EUR' else 'USD' end as currency,
                          now() - interval '${DAYS} days' * (1 - n::float8 / ${orders}) as sold_at
                     from generate_series(1, ${orders}) n) as drawn) as sale`,
  "insert into receipt_counters select seller_id, receipt_year, max(receipt_number) from orders group by 1, 2",
  insertTransactions(
    "sale",
    "select id as source_id, completed_at as happened_at, * from orders",
    `('provider_clearing', null::uuid, processor_fee_minor - total_minor, null::timestamptz),
     ('processor_fees', null, -processor_fee_minor, null),
     ('seller', seller_id, seller_minor, matures_at),
     ('referrer', referrer_id, commission_minor, matures_at),
     ('platform_revenue', null, fee_minor, null)`,
  ),
];

/** Refunds of orders without a referrer, ten days later. */
const REFUNDED = `receipt_number % ${REFUNDED_EVERY} = 0 and commission_minor = 0 and completed_at < now() - interval '10 days'`;

const refunds = [
  `insert into refunds (id, order_id, origin, status, amount_minor, currency, reason, created_at, completed_at)
   select ${idOf("refund", "id::text")}, id, 'service', 'succeeded', total_minor, currency, '', at, at
     from (select *, completed_at + interval '10 days' as at from orders where ${REFUNDED}) as o`,
  `update orders set status = 'refunded', refunded_minor = total_minor where ${REFUNDED}`,
  insertTransactions(
    "refund",
    "select r.id as source_id, r.completed_at as happened_at, o.* from refunds r join orders o on o.id = r.order_id",
    `('provider_clearing', null::uuid, total_minor, null::timestamptz),
     ('seller', seller_id, -seller_minor, matures_at),
     ('platform_revenue', null, -fee_minor, null)`,
  ),
];

const runs = [
  `insert into executions (id, user_id, product_id, product_version, provider, model, status, created_at, completed_at)
   select ${idOf("run", "id::text")}, buyer_id, product_id, '1.0.0', 'openai', 'gpt-4o-mini', 'completed', at, at
     from (select *, completed_at + interval '1 hour' as at from orders where receipt_number % ${RUN_EVERY} = 0) as o`,
];

const views = [
  `insert into product_daily_views (product_id, day, views)
   select ${idOf("product", "n")}, (now() at time zone 'UTC')::date - ago, 1 + (n * 7 + ago * 3) % 90
     from generate_series(1, ${PRODUCTS_OF_ONE + (SELLERS - 1) * PRODUCTS_OF_OTHERS}) n
    cross join generate_series(0, ${DAYS}) ago where n <= ${PRODUCTS_OF_ONE} or ago < ${VIEW_DAYS}`,
  `insert into author_daily_views (author_id, day, views)
   select p.author_id, d.day, sum(d.views) from product_daily_views d join products p on p.id = d.product_id group by 1, 2`,
];
