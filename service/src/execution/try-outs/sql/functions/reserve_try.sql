-- Version 1

-- Inserts a try within the limits of its product and visitor. Returns {"triesLeft"} of the visitor, or {"refusedBy"}:
--   off      the seller turned the try-out off
--   day      all tries of the day are used
--   visitor  the visitor, or the visitor's network, used all tries of the day
--   budget   the rest of the month's budget is less than `most_usd`
-- `visitors` has [{"visitor": hex digest, "factor": how many visitors it may stand for}].
-- The lock on the product's row makes parallel tries count one after another; each query sees what was committed before it began.
create or replace function reserve_try(
  try_id uuid, tried uuid, today date, month_start date, visitors jsonb, most_usd numeric, dead_usd numeric, at timestamptz, lease timestamptz
) returns jsonb language plpgsql as $$
declare
  conditions try_outs;
  spent numeric;
  fewest_left int;
begin
  select * into conditions from try_outs where product_id = tried for no key update;
  if not found then return '{"refusedBy": "off"}'; end if;
  with dead as (
    update tries set status = 'failed', error_code = 'INTERNAL_ERROR', cost_usd = abandoned_usd, ended_at = at
     where product_id = tried and status = 'running' and lease_until <= at
     returning day, cost_usd
  ), sums as (select day, count(*) as count, sum(cost_usd) as usd from dead group by day)
  update try_out_days d set failed = d.failed + s.count, cost_usd = d.cost_usd + s.usd
    from sums s where d.product_id = tried and d.day = s.day;
  insert into try_out_days (product_id, day) values (tried, today) on conflict do nothing;
  if (select tries from try_out_days where product_id = tried and day = today) >= conditions.max_per_day then
    return '{"refusedBy": "day"}';
  end if;
  select min(conditions.max_per_visitor_per_day * v.factor - coalesce(c.tries, 0)) into fewest_left
    from jsonb_to_recordset(visitors) v (visitor text, factor int)
    left join try_out_visitors c on c.product_id = tried and c.day = today and c.visitor = decode(v.visitor, 'hex');
  if fewest_left <= 0 then return '{"refusedBy": "visitor"}'; end if;
  select (select coalesce(sum(cost_usd), 0) from try_out_days where product_id = tried and day >= month_start)
       + (select coalesce(sum(expected_usd), 0) from tries where product_id = tried and status = 'running')
    into spent;
  if spent + most_usd > conditions.monthly_budget_usd then return '{"refusedBy": "budget"}'; end if;
  update try_out_days set tries = tries + 1 where product_id = tried and day = today;
  insert into try_out_visitors as c (product_id, day, visitor, tries)
  select tried, today, decode(v.visitor, 'hex'), 1 from jsonb_to_recordset(visitors) v (visitor text)
  on conflict (product_id, day, visitor) do update set tries = c.tries + 1;
  insert into tries (id, product_id, day, expected_usd, abandoned_usd, started_at, lease_until)
  values (try_id, tried, today, most_usd, dead_usd, at, lease);
  return jsonb_build_object('triesLeft', fewest_left - 1);
end $$;
