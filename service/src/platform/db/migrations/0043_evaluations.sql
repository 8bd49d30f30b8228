-- One evaluation of one version of a product by one test set.
create table evaluations (
  id uuid primary key,
  product_id uuid not null references products on delete cascade,
  -- The author, whose provider keys it uses.
  user_id uuid not null references users on delete cascade,
  version text not null,
  -- A draft can change under its version.
  content_sha256 text not null,
  test_set_id uuid not null references test_sets on delete cascade,
  repeats smallint not null,
  max_cost_usd numeric(16, 8) not null,
  price_list text not null,
  status text not null default 'running' check (status in ('running', 'completed', 'failed', 'canceled')),
  error_code text,
  error_message text,
  created_at timestamptz not null,
  completed_at timestamptz,
  -- Of a completed one: what the score card shows of each model.
  scores json,
  -- Signed by the first request for it.
  proof json
);
-- At most one of a product runs.
create unique index evaluations_running on evaluations (product_id) where status = 'running';
create index evaluations_product on evaluations (product_id, id desc);
create index evaluations_card on evaluations (product_id, version, id desc) where status = 'completed';
create index evaluations_user on evaluations (user_id);
create index evaluations_test_set on evaluations (test_set_id);
create trigger open_account before insert on evaluations
  for each row execute function must_not_be_closed('user_id');

-- What is compared: a model with the product, and the same model without it. They run one after the other.
create table evaluation_columns (
  evaluation_id uuid not null references evaluations on delete cascade,
  n smallint not null,
  kind text not null check (kind in ('product', 'baseline')),
  -- Null: as the steps of the workflow say.
  provider text,
  model text,
  is_sandbox boolean not null,
  -- Public ids of provider keys, by provider.
  api_keys jsonb not null,
  status text not null default 'pending' check (status in ('pending', 'running', 'completed', 'failed', 'canceled')),
  -- Its workflow run; null: it has not begun.
  execution_id uuid,
  cost_usd numeric(16, 8) not null default 0,
  primary key (evaluation_id, n)
);
create unique index evaluation_columns_execution on evaluation_columns (execution_id);
create index evaluation_columns_running on evaluation_columns (evaluation_id) where status = 'running';

-- One run of one case in one column, graded. Rows never change.
create table evaluation_results (
  evaluation_id uuid not null,
  column_n smallint not null,
  case_n smallint not null,
  repeat_n smallint not null,
  status text not null check (status in ('completed', 'failed')),
  error_code text,
  -- Null: the case has no deterministic assertion.
  is_passed boolean,
  score double precision,
  cost_usd numeric(16, 8),
  latency_ms bigint,
  -- Output and verdicts, whose reasons may quote it.
  sealed_texts text not null,
  primary key (evaluation_id, column_n, case_n, repeat_n),
  foreign key (evaluation_id, column_n) references evaluation_columns on delete cascade
);
