-- The conditions under which visitors may try a product, on a key of its seller.
create table try_outs (
  product_id uuid primary key references products on delete cascade,
  -- null: the sandbox.
  provider_key_id uuid references provider_keys on delete cascade,
  provider text not null,
  model text,
  max_per_day int not null,
  max_per_visitor_per_day int not null,
  monthly_budget_usd numeric(16, 8) not null,
  max_output_tokens int not null,
  updated_at timestamptz not null
);

-- Stays when the seller turns the try-out off, so that turning it on again frees no limit.
create table try_out_days (
  product_id uuid not null references products on delete cascade,
  day date not null,
  tries int not null default 0,
  completed int not null default 0,
  withheld int not null default 0,
  failed int not null default 0,
  cost_usd numeric(16, 8) not null default 0,
  primary key (product_id, day)
);

-- Visitors and networks only as digests, for two days.
create table try_out_visitors (
  product_id uuid not null references products on delete cascade,
  day date not null,
  visitor bytea not null,
  tries int not null,
  primary key (product_id, day, visitor)
);
create index try_out_visitors_day on try_out_visitors (day);

-- Without texts. No run of a buyer, so it is in no history, count or share of failed runs.
create table tries (
  id uuid primary key,
  product_id uuid not null references products on delete cascade,
  day date not null,
  status text not null default 'running' check (status in ('running', 'completed', 'withheld', 'failed')),
  -- Counts until the try has ended: the most that it may cost.
  expected_usd numeric(16, 8) not null,
  -- Counts if it never ends, because its process died: the provider may bill its prompt.
  abandoned_usd numeric(16, 8) not null,
  cost_usd numeric(16, 8),
  error_code text,
  started_at timestamptz not null,
  lease_until timestamptz not null,
  ended_at timestamptz
);
create index tries_open on tries (product_id) where status = 'running';
create index tries_failed on tries (product_id, started_at) where status = 'failed';
create index tries_started on tries (started_at);
