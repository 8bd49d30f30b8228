-- Version 1

-- Inserts a provider call within the limits of its key. Returns {"maxTokens"}: as many of `most_tokens` as the rest of the budget pays for.
-- Returns {"refusedBy"} when a limit is reached, or when fewer than `least_tokens` are left:
--   budget       the month's budget is spent
--   reserved     calls in flight hold the rest of the budget
--   concurrency  as many calls as the key allows are in flight
--   forgotten    the key was deleted
-- `call_usd` is the highest cost of the prompt and `token_usd` the price of a token of the answer. All four are null without a known price.
-- A function, because each of its queries sees what was committed before that query began. A single query that waited for the key would count
-- the state before its wait, and parallel calls would pass the limit together.
create or replace function reserve_provider_call(
  call uuid, stored_key uuid, execution uuid, call_usd numeric, token_usd numeric, most_tokens integer, least_tokens integer,
  dead_usd numeric, at timestamptz, month_start timestamptz, lease timestamptz
) returns jsonb language plpgsql as $$
declare
  most smallint;
  budget numeric;
  spent numeric;
  held numeric;
  least_usd numeric := coalesce(call_usd + least_tokens * token_usd, 0);
  tokens integer := most_tokens;
begin
  select max_concurrency, monthly_budget_usd into most, budget
    from provider_keys where id = stored_key and deleted_at is null;
  if not found then return '{"refusedBy": "forgotten"}'; end if;
  if most is not null or budget is not null then
    select max_concurrency, monthly_budget_usd into most, budget
      from provider_keys where id = stored_key for no key update;
    if most <= (select count(*) from provider_calls
                 where provider_key_id = stored_key and ended_at is null and lease_until > at) then
      return '{"refusedBy": "concurrency"}';
    end if;
    if budget is not null then
      -- One statement: a call that ends between two statements would be in neither sum. A clock that is behind changes no month.
      with budget_month as (
        select greatest(month_start, spent_month) as start from provider_keys where id = stored_key
      ), ended as (
        update provider_calls c set counted = true from budget_month m
         where c.provider_key_id = stored_key and not c.counted and c.started_at >= m.start and c.ended_at is not null
         returning c.cost_usd
      ), open as (
        select coalesce(sum(c.expected_usd) filter (where c.lease_until > at), 0) as usd,
               coalesce(sum(c.prompt_usd) filter (where c.lease_until <= at), 0) as dead
          from provider_calls c, budget_month m
         where c.provider_key_id = stored_key and not c.counted and c.started_at >= m.start and c.ended_at is null
      )
      update provider_keys k
         set spent_usd = case when k.spent_month = m.start then k.spent_usd else 0 end
                       + (select coalesce(sum(cost_usd), 0) from ended),
             spent_month = m.start
        from budget_month m, open where k.id = stored_key
        returning k.spent_usd + open.dead, open.usd into spent, held;
      if spent >= budget or spent + least_usd > budget then return '{"refusedBy": "budget"}'; end if;
      if spent + held >= budget or spent + held + least_usd > budget then return '{"refusedBy": "reserved"}'; end if;
      if token_usd > 0 then tokens := least(most_tokens, floor((budget - spent - held - call_usd) / token_usd)); end if;
    end if;
  end if;
  -- `last_used_at` is not worth a wait: the holder of the row writes the same value.
  update provider_keys set last_used_at = at
   where id = (select id from provider_keys where id = stored_key for no key update skip locked);
  insert into provider_calls (id, provider_key_id, execution_id, started_at, expected_usd, prompt_usd, lease_until)
  values (call, stored_key, execution, at, coalesce(call_usd + tokens * token_usd, 0), dead_usd, lease);
  return jsonb_build_object('maxTokens', tokens);
end $$;
