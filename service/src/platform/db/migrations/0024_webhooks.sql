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

-- Hash and merge joins are off: the cached plans are made while the tables are small, and a sequential scan would stay when they grow.

-- Creates one delivery for each event and subscribed endpoint, and numbers the events. A batch has the `oldest` events, and `by_account`
-- events of the accounts after `after` in equal shares, so that a burst of one account delays no other. One statement, so that no process
-- can stop between its locks. One worker at a time, so that numbers become visible in order. An event whose queue is locked waits for the
-- next batch. Ids of deliveries count up from `first_id`.
create function create_deliveries(at timestamptz, first_id uuid, oldest integer, by_account integer, after uuid)
returns table (handled integer, last_account uuid)
language plpgsql set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
  accounts uuid[];
  candidates uuid[];
  chosen uuid[];
  wanted_events uuid[];
  wanted_endpoints uuid[];
  queues uuid[];
begin
  if not pg_try_advisory_xact_lock(hashtext('webhook fan-out')) then return; end if;
  with recursive turn (user_id, n) as (
    (select user_id, 1 from event_recipients where seq is null and user_id > after order by user_id, event_id limit 1)
    union all
    select next.user_id, turn.n + 1
      from turn cross join lateral (
           select user_id from event_recipients where seq is null and user_id > turn.user_id order by user_id, event_id limit 1) next
     where turn.n < by_account)
  select array_agg(user_id order by n) into accounts from turn;
  select array_agg(id order by id) into candidates from (
    (select id from events where seq is null order by id limit oldest)
    union
    select own.event_id from unnest(accounts) as account (id)
     cross join lateral (select event_id from event_recipients where seq is null and user_id = account.id
                          order by event_id limit greatest(1, by_account / cardinality(accounts))) own) found;
  if candidates is null then return; end if;
  -- Endpoints that existed before the event. A test event has its delivery already. Recipients are looked up by event: a join would read
  -- all of them while the table is small.
  select array_agg(v.id order by v.id, e.id), array_agg(e.id order by v.id, e.id) into wanted_events, wanted_endpoints
    from events v
   cross join lateral (select user_id, type from event_recipients where event_id = v.id and type <> 'test' offset 0) r
    join webhook_endpoints e on e.user_id = r.user_id and e.deleted_at is null and e.created_at <= v.created_at
                            and (e.event_types is null or r.type = any (e.event_types))
   where v.id = any (candidates);
  -- Disabling an endpoint locks its queue, so its state cannot change until the commit.
  select array_agg(endpoint_id) into queues from (
    select endpoint_id from webhook_queues where endpoint_id = any (wanted_endpoints)
     order by endpoint_id for no key update skip locked) held;
  select array_agg(id order by id) into chosen from unnest(candidates) as candidate (id)
   where id not in (select pair.event_id from unnest(wanted_events, wanted_endpoints) as pair (event_id, endpoint_id)
                     where pair.endpoint_id <> all (coalesce(queues, '{}')));
  last_account := case when cardinality(accounts) >= by_account then accounts[cardinality(accounts)] end;
  handled := coalesce(cardinality(chosen), 0);
  if handled > 0 then
    perform insert_deliveries(
      array(select encode(overlay(uuid_send(first_id) placing substring(int4send(pair.n::integer) from 2) from 14 for 3), 'hex')::uuid
              from unnest(wanted_events, wanted_endpoints) with ordinality as pair (event_id, endpoint_id, n)
             where pair.event_id = any (chosen) order by pair.n),
      array(select pair.event_id from unnest(wanted_events, wanted_endpoints) with ordinality as pair (event_id, endpoint_id, n)
             where pair.event_id = any (chosen) order by pair.n),
      array(select pair.endpoint_id from unnest(wanted_events, wanted_endpoints) with ordinality as pair (event_id, endpoint_id, n)
             where pair.event_id = any (chosen) order by pair.n),
      at, false);
    with numbered as (
      update events e set seq = next.seq
        from (select id, nextval('events_seq') as seq from unnest(chosen) as candidate (id)) next
       where e.id = next.id and e.id = any (chosen) returning e.id, e.seq)
    update event_recipients r set seq = numbered.seq from numbered where r.event_id = numbered.id and r.event_id = any (chosen);
  end if;
  return next;
end $$;

-- Due now when the endpoint is enabled and its owner not banned, else skipped; none when the endpoint is no longer subscribed to the type.
-- The caller holds the locks of the queues.
create function insert_deliveries(ids uuid[], event_ids uuid[], endpoint_ids uuid[], at timestamptz, urgent boolean) returns void
language sql set enable_hashjoin = off set enable_mergejoin = off as $$
  insert into webhook_deliveries (id, event_id, endpoint_id, status, is_urgent, due_at, created_at, ended_at)
  select made.id, made.event_id, made.endpoint_id,
         case when open.is_on then 'pending' else 'skipped' end, urgent,
         case when open.is_on then at end, at,
         case when not open.is_on then at end
    from unnest(ids, event_ids, endpoint_ids) as made (id, event_id, endpoint_id)
    join events v on v.id = made.event_id
    join webhook_endpoints e on e.id = made.endpoint_id and e.deleted_at is null
                            and (e.event_types is null or v.type = any (array_append(e.event_types, 'test')))
    join users u on u.id = e.user_id
   cross join lateral (select e.disabled_by is null and u.banned_at is null as is_on) open
      on conflict (event_id, endpoint_id) do nothing;
  update webhook_queues set next_due = least(next_due, at), has_urgent = has_urgent or urgent
   where endpoint_id = any (endpoint_ids);
$$;

-- Leases at most `max_count` due deliveries of the slow queues, or of the others. The queue that has waited longest comes first. In flight are
-- at most max_in_flight for an endpoint, 32 for an account and `per_account` of an account in this kind of queue. One statement locks the
-- queues and the next, whose snapshot is newer, counts: in one statement, deliveries that another worker had just leased were missed, and
-- so were wake-ups.
create function claim_deliveries(at timestamptz, slow boolean, max_count integer, per_account integer, token uuid, until timestamptz, worker integer)
returns setof webhook_deliveries language plpgsql set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
  queues uuid[];
  claimed_count integer;
begin
  select array_agg(due.endpoint_id) into queues
    from (select endpoint_id, user_id from webhook_queues
           where is_slow = slow and next_due <= at and (blocked_until <= at or has_urgent)
           order by next_due limit 64 for no key update skip locked) due
   -- One worker at a time claims for an account, so that its 32 are counted exactly.
   where pg_try_advisory_xact_lock(hashtext('webhook account'), hashtext(due.user_id::text));
  if queues is null then return; end if;
  return query
  with room as materialized (
    select e.id, e.user_id, l.blocked_until,
           l.max_in_flight - (select count(*) from webhook_deliveries d where d.endpoint_id = e.id and d.lease_token is not null) as own,
           (select least(32 - count(*), per_account - count(*) filter (where ol.is_slow = slow))
              from webhook_endpoints o
              join webhook_queues ol on ol.endpoint_id = o.id
              join webhook_deliveries d on d.endpoint_id = o.id and d.lease_token is not null
             where o.user_id = e.user_id and o.deleted_at is null) as of_account
      from webhook_endpoints e join webhook_queues l on l.endpoint_id = e.id where e.id = any(queues)),
  due as materialized (
    select d.id, d.due_at, d.is_urgent, room.of_account,
           row_number() over (partition by room.user_id order by d.is_urgent desc, d.due_at, d.id) as nth
      from room cross join lateral (
             (select id, due_at, is_urgent from webhook_deliveries
               where endpoint_id = room.id and is_urgent and due_at <= at and lease_token is null
               limit greatest(0, room.own))
             union all
             (select id, due_at, is_urgent from webhook_deliveries
               where endpoint_id = room.id and not is_urgent and due_at <= at and lease_token is null and room.blocked_until <= at
               order by due_at, id limit greatest(0, room.own))
             order by is_urgent desc, due_at, id limit greatest(0, room.own)) d),
  chosen as (select id from due where nth <= of_account order by is_urgent desc, due_at, id limit max_count)
  update webhook_deliveries d set lease_token = token, lease_until = until, leased_by = worker, leases = d.leases + 1
    from chosen where d.id = chosen.id returning d.*;
  get diagnostics claimed_count = row_count;
  perform schedule_queues(queues, at, claimed_count = max_count);
end $$;

-- Sets when the queues are due next. A queue that still has due deliveries is full: the end of an attempt wakes it, and 250 ms are the
-- fallback. `is_cut`: the claim reached its limit and may have passed over a queue, so the queue stays due.
create function schedule_queues(queues uuid[], at timestamptz, is_cut boolean) returns void
language sql set enable_hashjoin = off set enable_mergejoin = off as $$
  update webhook_queues l
     set next_due = case when first.due_at > at then first.due_at
                         when first.due_at is null then 'infinity'
                         when is_cut then at
                         else at + interval '250 ms' end,
         has_urgent = exists (select from webhook_deliveries
                               where endpoint_id = queue.id and is_urgent and due_at is not null and lease_token is null)
    from unnest(queues) as queue (id)
    left join lateral (select due_at from webhook_deliveries
                        where endpoint_id = queue.id and due_at is not null and lease_token is null
                        order by due_at, id limit 1) first on true
   where l.endpoint_id = queue.id;
$$;

-- Records attempts and returns the ids of those that were accepted. An attempt whose lease has passed to another worker is logged as late
-- and changes nothing.
create function record_attempts(results jsonb) returns setof uuid
language plpgsql set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
begin
  perform from webhook_queues where endpoint_id in (select (r ->> 'endpoint_id')::uuid from jsonb_array_elements(results) r)
    order by endpoint_id for no key update;
  return query
  with result as materialized (
    select * from jsonb_to_recordset(results) as r (
      id uuid, attempt_id uuid, endpoint_id uuid, token uuid, n integer, started_at timestamptz, ended_at timestamptz,
      duration_ms integer, url text, request_headers jsonb, answer integer, response_headers jsonb, response_body text, error text,
      status text, scheduled_attempts smallint, due_at timestamptz, blocked_until timestamptz, is_exhausted boolean, pace text)),
  moved as (
    update webhook_deliveries d
       set status = r.status, attempts = r.n, scheduled_attempts = r.scheduled_attempts, due_at = r.due_at,
           is_manual = false, resume_at = null, is_urgent = false, lease_token = null, lease_until = null, leased_by = null, leases = 0,
           ended_at = case when r.due_at is null then r.ended_at end
      from result r where d.id = r.id and d.lease_token = r.token
    returning r.attempt_id, d.endpoint_id, r.ended_at, r.blocked_until, r.is_exhausted, r.pace, r.error is null as is_success),
  -- The endpoint was disabled or deleted during the attempt, and no other attempt was made since.
  overtaken as (
    update webhook_deliveries d
       set attempts = r.n, status = case when r.error is null then 'succeeded' else d.status end
      from result r where d.id = r.id and d.lease_token is null and d.due_at is null and d.attempts = r.n - 1
    returning r.attempt_id),
  logged as (
    insert into webhook_attempts (id, delivery_id, n, is_late, started_at, duration_ms, url, request_headers, status, response_headers, response_body, error)
    select r.attempt_id, d.id, r.n, moved.attempt_id is null and overtaken.attempt_id is null, r.started_at, r.duration_ms, r.url, r.request_headers, r.answer, r.response_headers, r.response_body, r.error
      from result r join webhook_deliveries d on d.id = r.id left join moved on moved.attempt_id = r.attempt_id
        left join overtaken on overtaken.attempt_id = r.attempt_id),
  woken as (
    update webhook_queues l
       -- Capacity is free again, so the queue is due now.
       set next_due = least(l.next_due, m.ended_at), blocked_until = greatest(l.blocked_until, m.blocked_until),
           max_in_flight = least(case when m.quick < m.attempts then 7 else 8 end, greatest(1, l.max_in_flight >> least(m.hung, 3)::integer) + m.quick)
      from (select endpoint_id, min(ended_at) as ended_at, max(blocked_until) as blocked_until, count(*) as attempts,
                   count(*) filter (where pace = 'hung') as hung, count(*) filter (where pace = 'quick') as quick
              from moved group by endpoint_id) m
     where l.endpoint_id = m.endpoint_id),
  health as (
    select endpoint_id, bool_or(is_success) as has_success, min(ended_at) filter (where not is_success) as failed_at,
           count(*) filter (where is_exhausted) as exhausted
      from moved group by endpoint_id),
  endpoint_health as (
    update webhook_endpoints e
       set failing_since = case when h.has_success then null else coalesce(e.failing_since, h.failed_at) end,
           failed_deliveries = case when h.has_success then 0 else e.failed_deliveries + h.exhausted end,
           emailed_day = case when h.has_success then 0 else e.emailed_day end,
           exhausted_deliveries = e.exhausted_deliveries + h.exhausted
      from health h
     -- Most attempts change nothing here.
     where e.id = h.endpoint_id and (case when h.has_success then e.failing_since is not null
                                          else e.failing_since is null end or h.exhausted > 0))
  select attempt_id from moved;
end $$;

-- Frees expired leases and those of the `dead` workers. The caller gets a lease of each delivery that killed several workers, to record it as
-- failed.
create function reclaim_deliveries(at timestamptz, dead integer[], token uuid, until timestamptz, worker integer)
returns setof webhook_deliveries language plpgsql set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare queues uuid[];
begin
  select array_agg(endpoint_id) into queues from (
    select l.endpoint_id from webhook_queues l
     where l.endpoint_id in (select d.endpoint_id from webhook_deliveries d
                              where d.lease_token is not null and (d.lease_until <= at or d.leased_by = any(dead)))
     order by l.endpoint_id limit 256 for no key update skip locked) stale;
  if queues is null then return; end if;
  return query
  update webhook_deliveries set lease_token = token, lease_until = until, leased_by = worker
   where endpoint_id = any(queues) and lease_token is not null and (lease_until <= at or leased_by = any(dead)) and leases >= 5
  returning *;
  update webhook_deliveries set lease_token = null, lease_until = null, leased_by = null, due_at = at
   where endpoint_id = any(queues) and lease_token is not null and (lease_until <= at or leased_by = any(dead));
  perform schedule_queues(queues, at, true);
end $$;
