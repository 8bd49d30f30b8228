create table webhook_endpoints (
  id uuid primary key,
  user_id uuid not null references users on delete cascade,
  url text not null,
  description text not null,
  -- Null: all.
  event_types text[],
  signature_content text not null check (signature_content in ('timestamp_body', 'body')),
  signature_prefix boolean not null,
  -- Null: enabled.
  disabled_by text check (disabled_by in ('owner', 'gone', 'failing')),
  -- Since the last success: the first failed attempt, the deliveries without attempts left, and the day of the last email to the owner.
  failing_since timestamptz,
  failed_deliveries integer not null default 0,
  emailed_day smallint not null default 0,
  -- Deliveries without attempts left since the last email about them, and when that was sent.
  exhausted_deliveries integer not null default 0,
  exhausted_emailed_at timestamptz,
  -- The URL of a run's callbacks: no list shows it, and it gets no events. All callbacks of an account sign with the secrets of one row,
  -- whose own signs_as is null and whose URL is empty.
  is_callback boolean not null default false,
  signs_as uuid references webhook_endpoints on delete cascade,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- The delivery log stays for 30 days.
  deleted_at timestamptz
);
create trigger open_account before insert on webhook_endpoints
  for each row execute function must_not_be_closed('user_id');
create index webhook_endpoints_user on webhook_endpoints (user_id, id desc) where deleted_at is null;
create unique index webhook_endpoints_callback on webhook_endpoints (user_id, url) where is_callback and deleted_at is null;
create index webhook_endpoints_signs_as on webhook_endpoints (signs_as) where signs_as is not null;
create index webhook_endpoints_disabled on webhook_endpoints (id) where disabled_by is not null and deleted_at is null;
create index webhook_endpoints_exhausted on webhook_endpoints (id) where exhausted_deliveries > 0;
create index webhook_endpoints_failing on webhook_endpoints (failing_since) where failing_since is not null;

create table webhook_secrets (
  id uuid primary key,
  endpoint_id uuid not null references webhook_endpoints on delete cascade,
  sealed_secret text not null,
  -- Null: until a rotation sets the end.
  activates_at timestamptz not null,
  expires_at timestamptz
);
create index webhook_secrets_endpoint on webhook_secrets (endpoint_id, activates_at desc);

create table webhook_deliveries (
  id uuid primary key,
  event_id uuid not null references events on delete cascade,
  endpoint_id uuid not null references webhook_endpoints on delete cascade,
  status text not null check (status in ('pending', 'retrying', 'succeeded', 'failed', 'skipped', 'canceled')),
  -- All attempts, and those of the schedule.
  attempts integer not null default 0,
  scheduled_attempts smallint not null default 0,
  -- Null: no further attempt is scheduled.
  due_at timestamptz,
  -- A manual retry is due; resume_at keeps the scheduled time.
  is_manual boolean not null default false,
  resume_at timestamptz,
  -- Goes first, and ignores blocked_until.
  is_urgent boolean not null default false,
  -- Set while a worker attempts the delivery.
  lease_token uuid,
  lease_until timestamptz,
  -- The key of the worker's session lock: without that lock the worker is dead. Null: the lease ends only by time.
  leased_by integer,
  -- Leases since the last result. At five, the delivery is recorded as failed, since it kills workers.
  leases smallint not null default 0,
  created_at timestamptz not null,
  ended_at timestamptz,
  unique (event_id, endpoint_id),
  check ((lease_token is null) = (lease_until is null))
) with (fillfactor = 70);
create index webhook_deliveries_due on webhook_deliveries (endpoint_id, due_at, id) where due_at is not null and lease_token is null;
create index webhook_deliveries_urgent on webhook_deliveries (endpoint_id) where is_urgent;
create index webhook_deliveries_leased on webhook_deliveries (endpoint_id, lease_until) where lease_token is not null;
create index webhook_deliveries_endpoint on webhook_deliveries (endpoint_id, id desc);
create index webhook_deliveries_status on webhook_deliveries (endpoint_id, status, id desc);

create table webhook_attempts (
  id uuid primary key,
  delivery_id uuid not null references webhook_deliveries on delete cascade,
  n integer not null,
  -- Recorded after the lease had ended: it changed nothing, and its number may occur twice.
  is_late boolean not null,
  started_at timestamptz not null,
  duration_ms integer not null,
  -- The request. Its body is the event's.
  url text not null,
  request_headers jsonb not null,
  -- Null: no response.
  status integer,
  response_headers jsonb,
  response_body text,
  error text
);
create index webhook_attempts_delivery on webhook_attempts (delivery_id, n, id);

-- The queue of one endpoint: when its next delivery is due. One narrow row each, so that polling costs the same however many deliveries
-- wait. Every change of a delivery locks the queue of its endpoint first.
create table webhook_queues (
  endpoint_id uuid primary key references webhook_endpoints on delete cascade,
  user_id uuid not null,
  next_due timestamptz not null default 'infinity',
  -- Retry-After of the last response.
  blocked_until timestamptz not null default '-infinity',
  -- Urgent deliveries ignore blocked_until.
  has_urgent boolean not null default false,
  -- Halved after each timeout, one more after each quick response.
  max_in_flight smallint not null default 8 check (max_in_flight between 1 and 8),
  is_slow boolean not null generated always as (max_in_flight < 8) stored
) with (fillfactor = 50);
create index webhook_queues_due on webhook_queues (is_slow, next_due);

-- A request to repeat failed and skipped deliveries. The job goes through them by id; last_delivery_id is its progress.
create table webhook_recoveries (
  id uuid primary key,
  endpoint_id uuid not null references webhook_endpoints on delete cascade,
  since timestamptz not null,
  until timestamptz not null,
  recovered integer not null default 0,
  last_delivery_id uuid,
  created_at timestamptz not null,
  ended_at timestamptz
);
