-- Grains of hours and years: docs/decisions/0101-hours-and-years-of-analytics.md. The next migration adds their sums, which takes longer than readers
-- of sales_sums can wait.

-- An hour's grain names the hour of the day, so that the primary key has the same hour of all days in one place. Five years by day in New
-- York then read five such places instead of 1,825.
create function hour_grain(at timestamptz) returns text language sql immutable parallel safe
return 'hour-' || lpad(extract(hour from at at time zone 'UTC')::text, 2, '0');

-- The operator's figures read neither hours nor years.
create index sales_sums_market_new on sales_sums (grain, starts_at) where scope = 'all' and grain in ('day', 'month');
drop index sales_sums_market;
alter index sales_sums_market_new rename to sales_sums_market;
alter table sales_sums drop constraint sales_sums_grain_check,
  add constraint sales_sums_grain_check check (grain in ('quarter', 'day', 'month', 'year') or grain = hour_grain(starts_at)) not valid;
