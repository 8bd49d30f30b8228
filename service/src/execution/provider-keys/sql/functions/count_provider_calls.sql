-- Version 1

-- Adds at most `most` ended calls of the month to the spent amount of their key, and returns how many it added. A key that is about to get a
-- budget needs this: its first call would otherwise count the whole month while all others wait. The lock is a statement of its own, so
-- that the next statement counts what was committed during the wait.
create or replace function count_provider_calls(stored_key uuid, month_start timestamptz, most integer)
returns integer language plpgsql as $$
declare
  found_calls integer;
begin
  perform from provider_keys where id = stored_key for no key update;
  with budget_month as (
    select greatest(month_start, spent_month) as start from provider_keys where id = stored_key
  ), few as (
    select c.id from provider_calls c, budget_month m
     where c.provider_key_id = stored_key and not c.counted and c.started_at >= m.start and c.ended_at is not null
     limit most
  ), ended as (
    update provider_calls c set counted = true from few where c.id = few.id returning c.cost_usd
  )
  update provider_keys k
     set spent_usd = case when k.spent_month = m.start then k.spent_usd else 0 end
                   + (select coalesce(sum(cost_usd), 0) from ended),
         spent_month = m.start
    from budget_month m where k.id = stored_key
    returning (select count(*) from ended) into found_calls;
  return found_calls;
end $$;
