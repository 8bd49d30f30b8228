-- A roll-up that ran at the same time would be missing in the sums below. Readers do not wait.
lock table sales_sums in share row exclusive mode;

create or replace function sales_cells(seller_id uuid, product_id uuid, referrer_id uuid, moved_at timestamptz)
returns table (scope text, of_id uuid, grain text, starts_at timestamptz) language sql stable parallel safe as $$
  select scope, of_id, grain, starts_at
    from (values ('all', seller_id), ('product', product_id), ('referrer', referrer_id)) as whose (scope, of_id)
   cross join (values ('quarter', date_bin('15 minutes', moved_at, 'epoch')),
                      ('day', date_trunc('day', moved_at, 'UTC')),
                      ('month', date_trunc('month', moved_at, 'UTC')),
                      ('year', date_trunc('year', moved_at, 'UTC'))) as span (grain, starts_at)
   where of_id is not null
  union all
  select 'all', seller_id, hour_grain(moved_at), date_bin('1 hour', moved_at, 'epoch');
$$;

set local work_mem = '128MB';
-- By an index, the statements would read the pages to which they write.
set local enable_indexscan = off;

insert into sales_sums
select seller_id, scope, of_id, currency, 'year', date_trunc('year', starts_at, 'UTC'), sum_bigint(sales), sum_bigint(gross), sum_bigint(discounts), sum_bigint(refunds),
       sum_bigint(disputes), sum_bigint(tax), sum_bigint(fees), sum_bigint(commissions), sum_bigint(net)
  from sales_sums where grain = 'month' group by 1, 2, 3, 4, 6 order by 1, 2, 3, 4, 6;

insert into sales_sums
select seller_id, scope, of_id, currency, hour_grain(starts_at), date_bin('1 hour', starts_at, 'epoch'), sum_bigint(sales), sum_bigint(gross), sum_bigint(discounts), sum_bigint(refunds),
       sum_bigint(disputes), sum_bigint(tax), sum_bigint(fees), sum_bigint(commissions), sum_bigint(net)
  from sales_sums where grain = 'quarter' and scope = 'all' group by 1, 2, 3, 4, 5, 6 order by 1, 2, 3, 5, 4, 6;

set local work_mem to default;
set local enable_indexscan to default;

alter table sales_sums validate constraint sales_sums_grain_check;
