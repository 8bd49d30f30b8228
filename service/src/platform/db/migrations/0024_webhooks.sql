create table webhook_endpoints (
  id uuid primary key,
  user_id uuid not null references users on delete cascade,
  url text not null,
  description text not null,
  -- Null: all.
  event_types text[],
  signature_content text not null check (signature_content in ('timestamp_body', 'body')),
  signature_prefix boolean not null,
  -- Why it gets nothing; null: it is enabled.
  disabled_by text check (disabled_by in ('owner', 'gone', 'failing')),
  -- Since its last success: when an attempt first failed, how many deliveries were given up, and of which day its owner was last told.
  failing_since timestamptz,
  failed_deliveries integer not null default 0,
  told_day smallint not null default 0,
  -- Deliveries that were given up after their last attempt, of which the owner was not told yet; and when that was last done.
  given_up integer not null default 0,
  given_up_told_at timestamptz,
  -- Where work of the account's calls back: it is in no list, gets what is sent to it alone, and signs with the secrets of another
  -- row, which is the same for all of an account; null: that row, which is nowhere.
  is_callback boolean not null default false,
  signs_as uuid references webhook_endpoints on delete cascade,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- Its log stays until it is old.
  deleted_at timestamptz
);
create trigger open_account before insert on webhook_endpoints
  for each row execute function must_not_be_closed('user_id');
create index webhook_endpoints_user on webhook_endpoints (user_id, id desc) where deleted_at is null;
create unique index webhook_endpoints_callback on webhook_endpoints (user_id, url) where is_callback and deleted_at is null;
create index webhook_endpoints_signs_as on webhook_endpoints (signs_as) where signs_as is not null;
create index webhook_endpoints_disabled on webhook_endpoints (id) where disabled_by is not null and deleted_at is null;
create index webhook_endpoints_given_up on webhook_endpoints (id) where given_up > 0;
create index webhook_endpoints_failing on webhook_endpoints (failing_since) where failing_since is not null;

create table webhook_secrets (
  id uuid primary key,
  endpoint_id uuid not null references webhook_endpoints on delete cascade,
  sealed_secret text not null,
  -- It signs from then on, and no longer than until then; null: until another takes its place.
  activates_at timestamptz not null,
  expires_at timestamptz
);
create index webhook_secrets_endpoint on webhook_secrets (endpoint_id, activates_at desc);

create table webhook_deliveries (
  id uuid primary key,
  event_id uuid not null references events on delete cascade,
  endpoint_id uuid not null references webhook_endpoints on delete cascade,
  status text not null check (status in ('pending', 'retrying', 'succeeded', 'failed', 'skipped', 'canceled')),
  -- Attempts made, and those of them that the schedule made.
  attempts integer not null default 0,
  scheduled_attempts smallint not null default 0,
  -- When it is to be attempted; null: never again by itself.
  due_at timestamptz,
  -- Somebody asked for the attempt that is due; the schedule's own one stands in resume_at.
  is_manual boolean not null default false,
  resume_at timestamptz,
  -- It goes before the others, and also while its endpoint wants to be left alone.
  is_urgent boolean not null default false,
  -- Whose it is while it is attempted, and until when that is believed.
  lease_token uuid,
  lease_until timestamptz,
  -- The worker that holds it, by the key of its session lock: without that lock it is dead. Null: only the end of the lease counts.
  leased_by integer,
  -- Leases since the last result: more than a few kill whoever takes it.
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
  -- Told after its lease had ended: it moved nothing, and its number may stand twice.
  is_late boolean not null,
  started_at timestamptz not null,
  duration_ms integer not null,
  -- What was sent, without the body, which is the event's.
  url text not null,
  request_headers jsonb not null,
  -- Null: there was no answer.
  status integer,
  response_headers jsonb,
  response_body text,
  error text
);
create index webhook_attempts_delivery on webhook_attempts (delivery_id, n, id);

-- When an endpoint has something to attempt: one narrow row each, so that looking costs the same however much waits. Written by
-- whoever hands out or records; whoever moves a delivery in another way locks it first.
create table webhook_lanes (
  endpoint_id uuid primary key references webhook_endpoints on delete cascade,
  user_id uuid not null,
  next_due timestamptz not null default 'infinity',
  -- It asked to be left alone until then.
  blocked_until timestamptz not null default '-infinity',
  -- But for what is urgent.
  has_urgent boolean not null default false,
  -- How many may be in flight: half of it after each attempt that hung, one more after each that was quick.
  width smallint not null default 8 check (width between 1 and 8),
  is_slow boolean not null generated always as (width < 8) stored
) with (fillfactor = 50);
create index webhook_lanes_due on webhook_lanes (is_slow, next_due);

-- What an owner asked to have attempted again: it goes through the deliveries by id, and knows how far it came.
create table webhook_recoveries (
  id uuid primary key,
  endpoint_id uuid not null references webhook_endpoints on delete cascade,
  since timestamptz not null,
  until timestamptz not null,
  recovered integer not null default 0,
  passed uuid,
  created_at timestamptz not null,
  ended_at timestamptz
);

-- These functions look rows up one by one: their plans are made while the tables are small, where reading all is as good, and kept
-- while they grow.

-- Creates a delivery of each event for each endpoint that wants it, and gives the event its number; at most some `oldest` events, and as
-- many as `turns` of accounts that take turns: those after the account `after`, each with an equal share, so that a burst of one account
-- delays no other. One statement, so that no process can stop between its locks; one worker at a time, so that numbers become visible
-- in their order. The event of a lane that somebody holds waits for the next round. Ids of deliveries count on from `first_id`.
create function fan_out_events(at timestamptz, first_id uuid, oldest integer, turns integer, after uuid)
returns table (handled integer, last_account uuid)
language plpgsql set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
  accounts uuid[];
  candidates uuid[];
  chosen uuid[];
  wanted_events uuid[];
  wanted_endpoints uuid[];
  lanes uuid[];
begin
  if not pg_try_advisory_xact_lock(hashtext('webhook fan-out')) then return; end if;
  with recursive turn (user_id, n) as (
    (select user_id, 1 from event_recipients where seq is null and user_id > after order by user_id, event_id limit 1)
    union all
    select next.user_id, turn.n + 1
      from turn cross join lateral (
           select user_id from event_recipients where seq is null and user_id > turn.user_id order by user_id, event_id limit 1) next
     where turn.n < turns)
  select array_agg(user_id order by n) into accounts from turn;
  select array_agg(id order by id) into candidates from (
    (select id from events where seq is null order by id limit oldest)
    union
    select own.event_id from unnest(accounts) as account (id)
     cross join lateral (select event_id from event_recipients where seq is null and user_id = account.id
                          order by event_id limit greatest(1, turns / cardinality(accounts))) own) found;
  if candidates is null then return; end if;
  -- Those that were there before the event. A test is for one endpoint, and has its delivery. Recipients are looked up event by event:
  -- joined, all that there are would be read while they are not many.
  select array_agg(v.id order by v.id, e.id), array_agg(e.id order by v.id, e.id) into wanted_events, wanted_endpoints
    from events v
   cross join lateral (select user_id, type from event_recipients where event_id = v.id and type <> 'test' offset 0) r
    join webhook_endpoints e on e.user_id = r.user_id and e.deleted_at is null and e.created_at <= v.created_at
                            and (e.event_types is null or r.type = any (e.event_types))
   where v.id = any (candidates);
  -- Whoever switches an endpoint off holds its lane: what is read of it from now on stays true until the commit.
  select array_agg(endpoint_id) into lanes from (
    select endpoint_id from webhook_lanes where endpoint_id = any (wanted_endpoints)
     order by endpoint_id for no key update skip locked) held;
  select array_agg(id order by id) into chosen from unnest(candidates) as candidate (id)
   where id not in (select pair.event_id from unnest(wanted_events, wanted_endpoints) as pair (event_id, endpoint_id)
                     where pair.endpoint_id <> all (coalesce(lanes, '{}')));
  last_account := case when cardinality(accounts) >= turns then accounts[cardinality(accounts)] end;
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
      update events e set seq = told.seq
        from (select id, nextval('events_seq') as seq from unnest(chosen) as told (id)) told
       where e.id = told.id and e.id = any (chosen) returning e.id, e.seq)
    update event_recipients r set seq = numbered.seq from numbered where r.event_id = numbered.id and r.event_id = any (chosen);
  end if;
  return next;
end $$;

-- Due now where the endpoint is enabled and its owner not banned, else skipped; none where it wants the type no more. The lanes are locked.
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
  update webhook_lanes set next_due = least(next_due, at), has_urgent = has_urgent or urgent
   where endpoint_id = any (endpoint_ids);
$$;

-- Hands out what is due in the lanes that are slow, or in those that are not, at most `most`, the lane that has waited longest first:
-- as many in flight an endpoint as its lane is wide, 32 an account and of these lanes no more than `share`. The lanes are locked by
-- one statement and counted by the next, whose snapshot is newer: counted by the first, what another worker had just handed out was
-- missed, and so were wake-ups.
create function claim_deliveries(at timestamptz, slow boolean, most integer, share integer, token uuid, until timestamptz, worker integer)
returns setof webhook_deliveries language plpgsql set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
  lanes uuid[];
  handed_out integer;
begin
  select array_agg(due.endpoint_id) into lanes
    from (select endpoint_id, user_id from webhook_lanes
           where is_slow = slow and next_due <= at and (blocked_until <= at or has_urgent)
           order by next_due limit 64 for no key update skip locked) due
   -- The lanes of one account are handed out by one worker at a time, so that its 32 are counted right.
   where pg_try_advisory_xact_lock(hashtext('webhook account'), hashtext(due.user_id::text));
  if lanes is null then return; end if;
  return query
  with room as materialized (
    select e.id, e.user_id, l.blocked_until,
           l.width - (select count(*) from webhook_deliveries d where d.endpoint_id = e.id and d.lease_token is not null) as own,
           (select least(32 - count(*), share - count(*) filter (where ol.is_slow = slow))
              from webhook_endpoints o
              join webhook_lanes ol on ol.endpoint_id = o.id
              join webhook_deliveries d on d.endpoint_id = o.id and d.lease_token is not null
             where o.user_id = e.user_id and o.deleted_at is null) as of_account
      from webhook_endpoints e join webhook_lanes l on l.endpoint_id = e.id where e.id = any(lanes)),
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
  chosen as (select id from due where nth <= of_account order by is_urgent desc, due_at, id limit most)
  update webhook_deliveries d set lease_token = token, lease_until = until, leased_by = worker, leases = d.leases + 1
    from chosen where d.id = chosen.id returning d.*;
  get diagnostics handed_out = row_count;
  perform set_lanes(lanes, at, handed_out = most);
end $$;

-- A lane that still has something due is full: what ends in flight wakes it, and this is for when nothing does. Where as much was
-- handed out as was asked for, it may have been passed over, and is looked at again by the next who asks.
create function set_lanes(lanes uuid[], at timestamptz, is_cut boolean) returns void
language sql set enable_hashjoin = off set enable_mergejoin = off as $$
  update webhook_lanes l
     set next_due = case when first.due_at > at then first.due_at
                         when first.due_at is null then 'infinity'
                         when is_cut then at
                         else at + interval '250 ms' end,
         has_urgent = exists (select from webhook_deliveries
                               where endpoint_id = lane.id and is_urgent and due_at is not null and lease_token is null)
    from unnest(lanes) as lane (id)
    left join lateral (select due_at from webhook_deliveries
                        where endpoint_id = lane.id and due_at is not null and lease_token is null
                        order by due_at, id limit 1) first on true
   where l.endpoint_id = lane.id;
$$;

-- Writes how attempts ended, and answers which of them were believed. Whose lease has passed on moves nothing: its attempt is kept
-- as late.
create function record_attempts(results jsonb) returns setof uuid
language plpgsql set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
begin
  perform from webhook_lanes where endpoint_id in (select (r ->> 'endpoint_id')::uuid from jsonb_array_elements(results) r)
    order by endpoint_id for no key update;
  return query
  with result as materialized (
    select * from jsonb_to_recordset(results) as r (
      id uuid, attempt_id uuid, endpoint_id uuid, token uuid, n integer, started_at timestamptz, ended_at timestamptz,
      duration_ms integer, url text, request_headers jsonb, answer integer, response_headers jsonb, response_body text, error text,
      status text, scheduled_attempts smallint, due_at timestamptz, blocked_until timestamptz, is_given_up boolean, pace text)),
  moved as (
    update webhook_deliveries d
       set status = r.status, attempts = r.n, scheduled_attempts = r.scheduled_attempts, due_at = r.due_at,
           is_manual = false, resume_at = null, is_urgent = false, lease_token = null, lease_until = null, leased_by = null, leases = 0,
           ended_at = case when r.due_at is null then r.ended_at end
      from result r where d.id = r.id and d.lease_token = r.token
    returning r.attempt_id, d.endpoint_id, r.ended_at, r.blocked_until, r.is_given_up, r.pace, r.error is null as is_success),
  -- Ended while it was in flight, as its endpoint was switched off or removed, and attempted by nobody since.
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
    update webhook_lanes l
       -- There is room again, so that whoever waits for it is looked at now.
       set next_due = least(l.next_due, m.ended_at), blocked_until = greatest(l.blocked_until, m.blocked_until),
           width = least(case when m.quick < m.attempts then 7 else 8 end, greatest(1, l.width >> least(m.hung, 3)::integer) + m.quick)
      from (select endpoint_id, min(ended_at) as ended_at, max(blocked_until) as blocked_until, count(*) as attempts,
                   count(*) filter (where pace = 'hung') as hung, count(*) filter (where pace = 'quick') as quick
              from moved group by endpoint_id) m
     where l.endpoint_id = m.endpoint_id),
  health as (
    select endpoint_id, bool_or(is_success) as has_success, min(ended_at) filter (where not is_success) as failed_at,
           count(*) filter (where is_given_up) as given_up
      from moved group by endpoint_id),
  judged as (
    update webhook_endpoints e
       set failing_since = case when h.has_success then null else coalesce(e.failing_since, h.failed_at) end,
           failed_deliveries = case when h.has_success then 0 else e.failed_deliveries + h.given_up end,
           told_day = case when h.has_success then 0 else e.told_day end,
           given_up = e.given_up + h.given_up
      from health h
     -- Most attempts say nothing new.
     where e.id = h.endpoint_id and (case when h.has_success then e.failing_since is not null
                                          else e.failing_since is null end or h.given_up > 0))
  select attempt_id from moved;
end $$;

-- Takes back what was leased to a worker that did not record in time how it went, or that is one of the `dead`. Of what killed several
-- the last lease goes to the caller, to record it as failed.
create function reap_deliveries(at timestamptz, dead integer[], token uuid, until timestamptz, worker integer)
returns setof webhook_deliveries language plpgsql set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare lanes uuid[];
begin
  select array_agg(endpoint_id) into lanes from (
    select l.endpoint_id from webhook_lanes l
     where l.endpoint_id in (select d.endpoint_id from webhook_deliveries d
                              where d.lease_token is not null and (d.lease_until <= at or d.leased_by = any(dead)))
     order by l.endpoint_id limit 256 for no key update skip locked) stale;
  if lanes is null then return; end if;
  return query
  update webhook_deliveries set lease_token = token, lease_until = until, leased_by = worker
   where endpoint_id = any(lanes) and lease_token is not null and (lease_until <= at or leased_by = any(dead)) and leases >= 5
  returning *;
  update webhook_deliveries set lease_token = null, lease_until = null, leased_by = null, due_at = at
   where endpoint_id = any(lanes) and lease_token is not null and (lease_until <= at or leased_by = any(dead));
  perform set_lanes(lanes, at, true);
end $$;
