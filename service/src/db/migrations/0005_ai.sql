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
  max_concurrency smallint,
  created_at timestamptz not null,
  last_used_at timestamptz,
  deleted_at timestamptz
);
create index provider_keys_user on provider_keys (user_id, id desc) where deleted_at is null;

create table executions (
  id uuid primary key,
  user_id uuid not null references users on delete cascade,
  product_id uuid not null references products,
  product_version text not null,
  -- null: the sandbox, which needs no key.
  provider_key_id uuid references provider_keys,
  provider text not null,
  model text,
  status text not null check (status in ('queued', 'running', 'waiting', 'completed', 'failed', 'canceled')),
  -- Variables and output, sealed; null when not stored.
  sealed_texts text,
  finish_reason text,
  error_code text,
  error_message text,
  attempts smallint not null default 0,
  prompt_tokens integer,
  completion_tokens integer,
  cost_usd numeric(16, 8),
  cost_known boolean,
  duration_ms integer,
  -- A run that nobody renews is a run whose process died.
  lease_until timestamptz not null,
  created_at timestamptz not null,
  completed_at timestamptz,
  -- Gone from its owner's history; the row stays for the budget of its key.
  deleted_at timestamptz
);
create index executions_user on executions (user_id, id desc) where deleted_at is null;
create index executions_running on executions (lease_until) where status = 'running';
create index executions_texts on executions (created_at) where sealed_texts is not null;
create index executions_key on executions (provider_key_id, created_at);
