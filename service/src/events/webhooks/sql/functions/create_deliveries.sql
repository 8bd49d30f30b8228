-- Version 3

-- Creates one delivery for each event and subscribed endpoint, and numbers the events. A batch has the `oldest` events, and `by_account`
-- events of the accounts after `after` in equal shares, so that a burst of one account delays no other. One statement, so that no process
-- can stop between its locks. One worker at a time, so that numbers become visible in order. An event whose queue is locked waits for the
-- next batch. Ids of deliveries count up from `first_id`.
-- Hash and merge joins are off: cached plans are made while the tables are small, and a sequential scan would stay when they grow.
create or replace function create_deliveries(at timestamptz, first_id uuid, oldest integer, by_account integer, after uuid)
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
  numbers bigint[];
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
  -- Endpoints that existed before the event. A test event has its delivery already. Recipients and endpoints are looked up
  -- one by one: a join would read all of them while the tables are small.
  select array_agg(v.id order by v.id, e.id), array_agg(e.id order by v.id, e.id) into wanted_events, wanted_endpoints
    from events v
   cross join lateral (select user_id, type from event_recipients where event_id = v.id and type <> 'test' offset 0) r
   cross join lateral (select id from webhook_endpoints
                        where user_id = r.user_id and deleted_at is null and created_at <= v.created_at
                          and (event_types is null or r.type = any (event_types)) offset 0) e
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
    -- Most events have no endpoint, and a call with empty arrays took a seventh of this function's time.
    if wanted_events is not null then
      perform insert_deliveries(
        array(select encode(overlay(uuid_send(first_id) placing substring(int4send(pair.n::integer) from 2) from 14 for 3), 'hex')::uuid
                from unnest(wanted_events, wanted_endpoints) with ordinality as pair (event_id, endpoint_id, n)
               where pair.event_id = any (chosen) order by pair.n),
        array(select pair.event_id from unnest(wanted_events, wanted_endpoints) with ordinality as pair (event_id, endpoint_id, n)
               where pair.event_id = any (chosen) order by pair.n),
        array(select pair.endpoint_id from unnest(wanted_events, wanted_endpoints) with ordinality as pair (event_id, endpoint_id, n)
               where pair.event_id = any (chosen) order by pair.n),
        at, false);
    end if;
    numbers := array(select nextval('events_seq') from unnest(chosen));
    update events set seq = numbers[array_position(chosen, id)] where id = any (chosen);
    update event_recipients set seq = numbers[array_position(chosen, event_id)] where event_id = any (chosen);
  end if;
  return next;
end $$;
