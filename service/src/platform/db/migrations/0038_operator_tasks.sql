-- Backups and verifications that administrators start. A process that runs one renews it.
create table operator_tasks (
  -- Version 7: in order of time.
  id uuid primary key,
  kind text not null check (kind in ('backup', 'ledger_verification')),
  step text not null,
  done bigint not null default 0,
  total bigint not null default 0,
  started_at timestamptz not null,
  renewed_at timestamptz not null,
  ended_at timestamptz,
  -- Null: it runs, or has succeeded.
  error text,
  -- What its kind reports: the file, the counts, the problems.
  result jsonb not null default '{}'
);
create unique index operator_tasks_running on operator_tasks (kind) where ended_at is null;
