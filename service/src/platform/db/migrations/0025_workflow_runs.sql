-- What the engine knows of a workflow's execution, beside its row in the history.
create table workflow_runs (
  execution_id uuid primary key references executions on delete cascade,
  user_id uuid not null references users on delete cascade,
  -- Definition, input, ids of keys and who is called back, sealed; null: forgotten, with the outputs of its steps.
  sealed_start text,
  -- When somebody must look at it: now, when its next timer is due, or when the lease of whoever drives it runs out. Null: it has ended.
  due_at timestamptz,
  -- Of whoever drives it: a checkpoint of anybody else is refused.
  lease_token uuid,
  -- Leases since the last checkpoint: what ends process after process is given up.
  leases smallint not null default 0,
  -- Counts what it was told from outside (cancel, decisions, ends of what it called): who has not heard all of it writes nothing.
  signals integer not null default 0,
  -- Of one that a step of another workflow called: which attempt of which step did, and how deep that is.
  parent_id uuid references workflow_runs on delete set null,
  parent_step text,
  parent_item integer,
  parent_attempt integer,
  depth smallint not null default 1,
  -- How it ended, for the step that called it.
  sealed_result text
) with (fillfactor = 70);
create index workflow_runs_due on workflow_runs (due_at) where due_at is not null;
-- Where some accounts get none for now, those of others are found without a look at theirs.
create index workflow_runs_account on workflow_runs (user_id, due_at) where due_at is not null;
create index workflow_runs_texts on workflow_runs (execution_id)
  where due_at is null and (sealed_start is not null or sealed_result is not null);
-- However often an attempt is made again, it calls once.
create unique index workflow_runs_called on workflow_runs (parent_id, parent_step, parent_item, parent_attempt) where parent_id is not null;
create trigger open_account before insert on workflow_runs
  for each row execute function must_not_be_closed('user_id');

create table execution_steps (
  execution_id uuid not null references workflow_runs on delete cascade,
  step_id text not null,
  -- Of a map; -1: the step itself.
  item integer not null,
  -- In which order they began.
  n integer not null,
  type text not null check (type in ('prompt', 'transform', 'map', 'approval', 'delay', 'product')),
  status text not null check (status in ('queued', 'running', 'waiting', 'completed', 'failed', 'skipped', 'canceled')),
  -- Calls made, those of them that `retry` made since somebody last asked for the run, and calls that a dead process may have made too.
  attempt integer not null,
  retries integer not null,
  repeats integer not null,
  -- Of a map: how many.
  items integer,
  -- The execution that does its work.
  called uuid,
  -- When its wait ends, or its time is up.
  due_at timestamptz,
  sealed_output text,
  error_code text,
  error_message text,
  provider text,
  model text,
  prompt_tokens bigint,
  completion_tokens bigint,
  cost_usd numeric(16, 8),
  cost_known boolean,
  usage_estimated boolean not null default false,
  -- Of an approval; written by whoever decides, never by the engine.
  decision text check (decision in ('approved', 'rejected')),
  decided_at timestamptz,
  started_at timestamptz,
  ended_at timestamptz,
  primary key (execution_id, step_id, item)
) with (fillfactor = 70);

-- What happened, in the order in which it did: no text of anybody's in it.
create table execution_events (
  execution_id uuid not null references workflow_runs on delete cascade,
  seq integer not null,
  type text not null,
  data jsonb not null,
  created_at timestamptz not null,
  primary key (execution_id, seq)
);
