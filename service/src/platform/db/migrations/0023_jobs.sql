-- The runs of a durable schedule. A run that has begun and not ended is run again; all times between the last run that ended and now
-- are still due. The row with slot -infinity records when the schedule was first read: times count from then.
create table scheduled_runs (
  job text not null,
  slot timestamptz not null,
  done_at timestamptz,
  primary key (job, slot)
);

-- Statistics of each job, over all workers.
create table job_runs (
  job text primary key,
  -- Null: a queued job.
  period_seconds integer,
  known_since timestamptz not null,
  runs bigint not null default 0,
  failures bigint not null default 0,
  last_success_at timestamptz,
  last_failure_at timestamptz
);
