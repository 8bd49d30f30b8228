create table provider_keys (
  id uuid primary key,
  user_id uuid not null references users on delete cascade,
  provider text not null,
  name text not null,
  sealed_key text not null,
  last4 text not null,
  base_url text,
  status text not null default 'unverified' check (status in ('unverified', 'valid', 'invalid')),
  monthly_budget_usd numeric(16, 8),
  -- Of the budget: what the calls of the month that are counted already have cost.
  spent_usd numeric(16, 8) not null default 0,
  spent_month timestamptz,
  max_concurrency smallint,
  created_at timestamptz not null,
  last_used_at timestamptz,
  deleted_at timestamptz
);
create index provider_keys_user on provider_keys (user_id, id desc) where deleted_at is null;

-- Calls with stored keys, which the keys' limits count: one for a prompt, any number for a workflow.
create table provider_calls (
  id uuid primary key,
  provider_key_id uuid not null references provider_keys on delete cascade,
  -- No reference: a prompt's is written right behind, by the same statement.
  execution_id uuid not null,
  started_at timestamptz not null,
  -- Counts until the call has ended: the most that it may cost.
  expected_usd numeric(16, 8) not null,
  -- Counts where it never ended, because its process died: the provider may bill its prompt.
  prompt_usd numeric(16, 8) not null default 0,
  cost_usd numeric(16, 8),
  ended_at timestamptz,
  -- One that did not end by then is of a process that died, and counts no more.
  lease_until timestamptz not null,
  -- Its cost is in the key's `spent_usd`: a month of calls is not summed anew for each of them.
  counted boolean not null default false
);
create index provider_calls_month on provider_calls (provider_key_id, started_at) where not counted;
create index provider_calls_open on provider_calls (provider_key_id) where ended_at is null;

-- Takes the call's place within the limits of its key. Returns {"refusedBy"} where a limit stands against it: budget,
-- reserved (calls under way hold what is left of the budget), concurrency, or forgotten; else {"maxTokens"}, of the answer,
-- which are as many of `most_tokens` as the rest of a budget pays for. Fewer than `least_tokens` are refused. `call_usd` is the
-- most that the prompt may cost and `token_usd` the price of a token of the answer; all four are null where no price is known.
-- A function, because each of its queries sees what was committed before that query began: one query that waited for
-- the key would count as of before it waited, and parallel calls would slip through together.
create function reserve_provider_call(
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
      -- One statement: what ends between two of them would be in neither sum. A clock that is behind changes no month.
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
  -- When it was last used is not worth waiting for: whoever holds the row writes the same.
  update provider_keys set last_used_at = at
   where id = (select id from provider_keys where id = stored_key for no key update skip locked);
  insert into provider_calls (id, provider_key_id, execution_id, started_at, expected_usd, prompt_usd, lease_until)
  values (call, stored_key, execution, at, coalesce(call_usd + tokens * token_usd, 0), dead_usd, lease);
  return jsonb_build_object('maxTokens', tokens);
end $$;

-- Adds some of the month's ended calls, at most so many, to what their key has spent, and answers how many. For a key that is
-- about to get a budget: its first call would otherwise count the whole month, and all others would wait for it. The lock is
-- a statement of its own, as above.
create function count_provider_calls(stored_key uuid, month_start timestamptz, most integer)
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

create table executions (
  id uuid primary key,
  type text not null default 'PROMPT' check (type in ('PROMPT', 'WORKFLOW')),
  user_id uuid not null references users on delete cascade,
  product_id uuid not null references products,
  product_version text not null,
  -- null: the sandbox, which needs no key, or a workflow, whose steps have keys of their own.
  provider_key_id uuid references provider_keys,
  -- null: a workflow.
  provider text,
  model text,
  mode text not null default 'sync' check (mode in ('sync', 'async', 'stream')),
  status text not null check (status in ('queued', 'running', 'waiting', 'completed', 'failed', 'canceled')),
  -- Variables and output, sealed; null when not stored.
  sealed_texts text,
  finish_reason text,
  error_code text,
  error_message text,
  -- Of a provider's fault: what its error says beside its code. Words of ours and numbers.
  fault jsonb,
  attempts smallint not null default 0,
  -- Sums of steps, for a workflow: past 2^31, as its duration in weeks is.
  prompt_tokens bigint,
  completion_tokens bigint,
  cost_usd numeric(16, 8),
  cost_known boolean,
  -- Which prices it was reckoned by.
  price_list text,
  -- The provider did not count the tokens; the numbers are ours.
  usage_estimated boolean not null default false,
  duration_ms bigint,
  -- A running prompt past it is one whose process died; null: nobody runs it, or an engine with leases of its own does.
  lease_until timestamptz,
  cancel_requested_at timestamptz,
  -- null: its owner asked, or nobody did.
  cancel_reason text check (cancel_reason in ('account_banned', 'account_closed')),
  created_at timestamptz not null,
  completed_at timestamptz,
  -- Gone from its owner's history, or never in it, as a prompt that a workflow's step ran; the row stays, as a run of its product.
  deleted_at timestamptz
);
create index executions_user on executions (user_id, id desc) where deleted_at is null;
create index executions_running on executions (lease_until) where status = 'running' and type = 'PROMPT';
create index executions_product on executions (product_id);
create index executions_texts on executions (created_at) where sealed_texts is not null;
create index executions_key on executions (provider_key_id, created_at);
