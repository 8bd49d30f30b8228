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
-- The runs of a product since some time, and by whom, from the index alone.
create index executions_product on executions (product_id, created_at) include (user_id);
create index executions_texts on executions (created_at) where sealed_texts is not null;
create index executions_key on executions (provider_key_id, created_at);
