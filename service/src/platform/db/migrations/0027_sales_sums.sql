-- What each seller's orders moved, added up: analytics answers from here, at a cost of the days that are asked about and not of the
-- orders that were made (docs/decisions/0036-analytics-roll-ups.md). All of it follows from the books, which `ledger verify` holds it
-- against, and from which `analytics rebuild` makes it anew; so it needs no foreign keys.

-- One row for each booking of an order, written in its transaction: nobody waits for anybody. A job folds them into sales_sums.
create table sales_movements (
  id uuid primary key,
  seller_id uuid not null,
  product_id uuid not null,
  referrer_id uuid,
  currency text not null,
  -- As the books say it.
  moved_at timestamptz not null,
  -- How many were sold, free copies too.
  sales bigint not null default 0,
  -- Charged, less tax.
  gross bigint not null default 0,
  -- Taken off the price, in the terms of the price.
  discounts bigint not null default 0,
  -- Given back, less tax.
  refunds bigint not null default 0,
  -- Held or taken by banks, less tax, and what losing cost; below zero where one was won.
  disputes bigint not null default 0,
  -- The next four are what the entries of the order's books add up to.
  tax bigint not null default 0,
  fees bigint not null default 0,
  commissions bigint not null default 0,
  net bigint not null default 0,
  check (net = gross - refunds - disputes - fees - commissions)
);
create index sales_movements_seller on sales_movements (seller_id);

-- Of bigints as a bigint, and 0 of none: sum() answers a numeric, at several times the time and memory where there are many groups. What
-- does not fit is an error, as it is in the columns.
create aggregate sum_bigint(bigint) (sfunc = int8pl, stype = bigint, initcond = '0', combinefunc = int8pl, parallel = safe);

create table sales_sums (
  seller_id uuid not null,
  -- Of all that the seller sold, of one product, or of what came by one referrer.
  scope text not null check (scope in ('all', 'product', 'referrer')),
  -- The product or the referrer; of all: the seller.
  of_id uuid not null,
  currency text not null,
  -- A quarter of an hour, because every offset from UTC is a number of those; a day and a month of UTC.
  grain text not null check (grain in ('quarter', 'day', 'month')),
  starts_at timestamptz not null,
  sales bigint not null,
  gross bigint not null,
  discounts bigint not null,
  refunds bigint not null,
  disputes bigint not null,
  tax bigint not null,
  fees bigint not null,
  commissions bigint not null,
  net bigint not null,
  primary key (seller_id, scope, of_id, grain, currency, starts_at),
  check (net = gross - refunds - disputes - fees - commissions)
);
-- All products of a span, or all referrers.
create index sales_sums_spans on sales_sums (seller_id, scope, grain, currency, starts_at) where scope <> 'all';
-- Of the whole market.
create index sales_sums_market on sales_sums (grain, starts_at) where scope = 'all' and grain <> 'quarter';

-- The sums to which a movement belongs.
create function sales_cells(seller_id uuid, product_id uuid, referrer_id uuid, moved_at timestamptz)
returns table (scope text, of_id uuid, grain text, starts_at timestamptz) language sql stable parallel safe as $$
  select scope, of_id, grain, starts_at
    from (values ('all', seller_id), ('product', product_id), ('referrer', referrer_id)) as whose (scope, of_id)
   cross join (values ('quarter', date_bin('15 minutes', moved_at, 'epoch')),
                      ('day', date_trunc('day', moved_at, 'UTC')),
                      ('month', date_trunc('month', moved_at, 'UTC'))) as span (grain, starts_at)
   where of_id is not null;
$$;

-- Sums as they stand at this moment, rolled up or not; a cell may have several rows.
create view sales_cells_now as
  select * from sales_sums
  union all
  select m.seller_id, c.scope, c.of_id, m.currency, c.grain, c.starts_at, m.sales, m.gross, m.discounts, m.refunds, m.disputes,
         m.tax, m.fees, m.commissions, m.net
    from sales_movements m
   cross join lateral sales_cells(m.seller_id, m.product_id, m.referrer_id, m.moved_at) as c;

-- What somebody was booked that is no order's: payouts. Of all else that they ever earned the sums tell.
create index ledger_entries_of_no_order on ledger_entries (owner_id) where account = 'seller' and order_id is null;
