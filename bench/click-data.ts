import { idOf, insertTransactions } from "./ledger-data.ts";

const BUYERS = 50_000;
const DAYS = 700;
const DELIVERY_DAYS = 29;
/** One order in so many is of the member as buyer, and one of the member as seller. */
const BOUGHT_EVERY = 500;
const SOLD_EVERY = 10;

/** The member whose pages are measured: one of the sellers, found by this address. */
export const MEMBER_EMAIL = "seller0@bench.example";
const member = `(select id from users where email = '${MEMBER_EMAIL}')`;
export const ENDPOINT = idOf("endpoint", "'1'");

export interface ClickDataSize {
  orders: number;
  deliveries: number;
  runs: number;
  requests: number;
}

/** SQL for a shop with products: orders with ledger entries, runs, deliveries and logged requests. */
export const clickData = ({ orders, deliveries, runs, requests }: ClickDataSize): string[] => [
  ...people,
  ...sales(orders),
  ...deliveryLog(deliveries),
  runsOf(runs),
  requestsOf(requests),
];

const people = [
  `insert into users (id, email, name, created_at)
   select ${idOf("buyer", "n")}, 'clicks' || n || '@bench.example', 'Buyer ' || n, now() - interval '3 years'
     from generate_series(0, ${BUYERS - 1}) n`,
  `create table bench.sold as
   select row_number() over (partition by author_id = ${member} order by id) - 1 as n,
          author_id = ${member} as is_own, id, author_id, title, type, greatest(price_minor, 100) as price
     from products where status = 'published' and currency = 'USD'`,
  "create unique index on bench.sold (is_own, n)",
  "analyze bench.sold",
];

const countOf = (isOwn: boolean) => `(select count(*) from bench.sold where is_own = ${isOwn})`;

/** Evenly over two years. A seller's platform fee is a tenth, the provider keeps 30 cents; each sale matures after two weeks. */
const sales = (orders: number) => [
  `insert into orders (id, buyer_id, seller_id, product_id, buyer_name, buyer_email, seller_name, product_title, product_type,
                       product_version, status, subtotal_minor, total_minor, fee_minor, seller_minor, fee_basis_points,
                       processor_fee_minor, currency, refund_days, payment_method_id, created_at, completed_at, matures_at,
                       receipt_year, receipt_number)
   select ${idOf("order", "n")}, buyer_id, author_id, id, 'Buyer', 'buyer@bench.example', 'Seller', title, type, '1.0.0', 'completed',
          price, price, price / 10, price - price / 10, 1000, 30, 'USD', 14, 'pm_test_ok', sold_at, sold_at, sold_at + interval '14 days',
          year, row_number() over (partition by author_id, year order by n)
     from (select d.n, d.sold_at, s.*, extract(year from d.sold_at at time zone 'UTC') as year,
                  case when d.is_bought then ${member} else ${idOf("buyer", `(d.n::bigint * 7919 % ${BUYERS})`)} end as buyer_id
             from (select n, n % ${BOUGHT_EVERY} = 1 as is_bought, n % ${SOLD_EVERY} = 0 as is_sold,
                          now() - interval '${DAYS} days' * (1 - n::float8 / ${orders}) as sold_at
                     from generate_series(1, ${orders}) n) as d
             join (select n as at, is_own, id, author_id, title, type, price from bench.sold) as s
               on s.is_own = d.is_sold
              and s.at = case when d.is_sold then d.n / ${SOLD_EVERY} % ${countOf(true)} else d.n::bigint * 104729 % ${countOf(false)} end) as sale`,
  "insert into receipt_counters select seller_id, receipt_year, max(receipt_number) from orders group by 1, 2",
  insertTransactions(
    "sale",
    "select id as source_id, completed_at as happened_at, * from orders",
    `('provider_clearing', null::uuid, processor_fee_minor - total_minor, null::timestamptz),
     ('processor_fees', null, -processor_fee_minor, null),
     ('seller', seller_id, seller_minor, matures_at),
     ('platform_revenue', null, fee_minor, null)`,
  ),
  `insert into entitlements (buyer_id, product_id, order_id, major, status, created_at)
   select distinct on (buyer_id, product_id) buyer_id, product_id, id, 1, 'active', completed_at from orders order by 1, 2, completed_at`,
];

/** In order of time. One delivery in a hundred failed, one in a thousand waits for its next attempt in the far future. */
const deliveryLog = (deliveries: number) => {
  const at = `now() - interval '${DELIVERY_DAYS} days' * (1 - n::float8 / ${deliveries})`;
  return [
    `insert into webhook_endpoints (id, user_id, url, description, signature_content, signature_prefix, created_at, updated_at)
     values (${ENDPOINT}, ${member}, 'https://hooks.example.com/', '', 'body', false, now(), now())`,
    `create table bench.delivered as
     select ${idInOrder(at)} as id, n, ${at} as at,
            case when n % 3 = 0 then 'review.created' else 'purchase.completed' end as type
       from generate_series(1, ${deliveries}) n`,
    `insert into events (id, type, body, seq, created_at)
     select id, type, '{"type":"' || type || '","data":{"comment":"It does what it says."}}', n, at from bench.delivered order by n`,
    `insert into event_recipients (user_id, event_id, type, seq) select ${member}, id, type, n from bench.delivered order by n`,
    `insert into webhook_deliveries (id, event_id, endpoint_id, status, attempts, scheduled_attempts, due_at, created_at, ended_at)
     select id, id, ${ENDPOINT}, status, 1, 1, case status when 'retrying' then now() + interval '90 days' end, at,
            case status when 'retrying' then null else at end
       from (select *, case when n % 100 = 1 then 'failed' when n % 1000 = 2 then 'retrying' else 'succeeded' end as status
               from bench.delivered) as d order by n`,
    `insert into webhook_attempts (id, delivery_id, n, is_late, started_at, duration_ms, url, request_headers, status, response_headers, response_body)
     select id, id, 1, false, at, 40 + n % 200, 'https://hooks.example.com/', '{"webhook-id":"evt"}',
            case when n % 100 = 1 or n % 1000 = 2 then 503 else 200 end, '{}', 'ok' from bench.delivered order by n`,
    "drop table bench.delivered",
  ];
};

/** Ids of version 7, as the service makes them: lists are in their order. */
const idInOrder = (at: string) =>
  `(lpad(to_hex((extract(epoch from ${at}) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || '8' || lpad(to_hex(n), 15, '0'))::uuid`;

const runAt = (count: number) => `now() - interval '25 days' * (1 - n::float8 / ${count})`;

/** Of the member's products, in turn by the member and by buyers. */
const runsOf = (runs: number) => `
  insert into executions (id, type, user_id, product_id, product_version, provider, model, status, attempts, prompt_tokens,
                          completion_tokens, cost_usd, cost_known, duration_ms, error_code, error_message, created_at, completed_at)
  select d.id, 'PROMPT', case when d.n % 2 = 0 then ${member} else ${idOf("buyer", `(d.n % ${BUYERS})`)} end, s.id, '1.0.0', 'sandbox',
         'sandbox-1', status, 1, 100, 200, 0.001, true, 900,
         case status when 'failed' then 'PROVIDER_ERROR' end, case status when 'failed' then 'The provider had a fault.' end, at, at
    from (select n, ${idInOrder(runAt(runs))} as id, ${runAt(runs)} as at, case when n % 50 = 1 then 'failed' else 'completed' end as status
            from generate_series(1, ${runs}) n) as d
    join bench.sold s on s.is_own and s.n = d.n % ${countOf(true)}`;

const requestsOf = (requests: number) => {
  const at = `now() - interval '6 days' * (1 - n::float8 / ${requests})`;
  return `
  insert into request_logs (id, user_id, at, request_id, method, path, operation, status, error_code, duration_ms, credential, api_key_id)
  select ${idInOrder(at)}, ${member}, ${at}, 'req' || n, case when n % 4 = 0 then 'POST' else 'GET' end, '/v1/products', 'products.list',
         case when n % 40 = 1 then 404 when n % 200 = 2 then 500 else 200 end,
         case when n % 40 = 1 then 'PRODUCT_NOT_FOUND' when n % 200 = 2 then 'INTERNAL_ERROR' end, 5, 'key', ${idOf("key", "'1'")}
    from generate_series(1, ${requests}) n`;
};
