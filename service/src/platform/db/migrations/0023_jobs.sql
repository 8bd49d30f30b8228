-- The slots of a schedule. One that has begun and not ended is carried out anew; what lies between the last that ended and now is
-- still to do. The slot -infinity ended when the schedule was first looked at: slots count from then.
create table job_slots (
  job text not null,
  slot timestamptz not null,
  done_at timestamptz,
  primary key (job, slot)
);

-- How the jobs go, all workers together.
create table job_rounds (
  job text primary key,
  -- Null: it is done when it is asked for.
  period_seconds integer,
  known_since timestamptz not null,
  runs bigint not null default 0,
  failures bigint not null default 0,
  last_success_at timestamptz,
  last_failure_at timestamptz
);
