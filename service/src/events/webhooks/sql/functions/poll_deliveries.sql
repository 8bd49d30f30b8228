-- Version 2

-- Records attempts, creates the deliveries of new events, claims due ones of the queues that are not slow, and reads these: one commit and one
-- round trip from an event to its attempt, and from a response to the next attempt. The first row has no delivery: it says which attempts are
-- unrecorded, how many events were handled, where the next batch starts, and whether a slow queue is due. Ids of created deliveries count up
-- from `first_id`.
-- Attempts are unrecorded when one of `result_queues` or another lock is held, or a row is refused. The caller records them by
-- record_attempts, so that they delay no others. Until then they count as in flight.
-- The statement fails when a lock of an event or a delivery takes longer than `lock_timeout`, since attempts wait for it and their leases end.
-- Plans are made once for all values, for the functions that it calls, too: with few values PostgreSQL would plan half of their statements anew
-- at each call. Sequential scans are off, because one that was planned while the tables are small would stay when they grow.
create or replace function poll_deliveries(
  at timestamptz, first_id uuid, oldest integer, by_account integer, after uuid,
  max_count integer, per_account integer, token uuid, until timestamptz, worker integer, results jsonb, result_queues uuid[]
) returns table (
  unrecorded uuid[], handled integer, last_account uuid, has_slow boolean,
  id uuid, event_id uuid, endpoint_id uuid, status text, attempts integer, scheduled_attempts smallint, is_manual boolean,
  resume_at timestamptz, lease_token uuid, body text, sealed_body text, user_id uuid, url text, content text, prefix boolean, secrets json)
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set lock_timeout = '250ms' as $$
#variable_conflict use_column
declare
  claimed uuid[];
  queues uuid[];
  recordable jsonb;
begin
  if results is not null then
    queues := array(select q.endpoint_id from webhook_queues q where q.endpoint_id = any (result_queues)
                     order by q.endpoint_id for no key update skip locked);
    if cardinality(queues) < cardinality(result_queues) then
      unrecorded := array(select (r ->> 'attempt_id')::uuid from jsonb_array_elements(results) r
                           where (r ->> 'endpoint_id')::uuid <> all (queues));
      recordable := (select jsonb_agg(r) from jsonb_array_elements(results) r where (r ->> 'endpoint_id')::uuid = any (queues));
    else
      recordable := results;
    end if;
    if recordable is not null and not try_record_attempts(recordable) then
      unrecorded := array(select (r ->> 'attempt_id')::uuid from jsonb_array_elements(results) r);
    end if;
    max_count := max_count - coalesce(cardinality(unrecorded), 0);
  end if;
  handled := 0;
  last_account := after;
  if exists (select from events where seq is null) then
    select c.handled, c.last_account into handled, last_account from create_deliveries(at, first_id, oldest, by_account, after) c;
  end if;
  has_slow := exists (select from webhook_queues where is_slow and next_due <= at and (blocked_until <= at or has_urgent));
  return next;
  if max_count > 0 and exists (
    select from webhook_queues where not is_slow and next_due <= at and (blocked_until <= at or has_urgent)) then
    claimed := array(select d.id from claim_deliveries(at, false, max_count, per_account, token, until, worker) d);
  end if;
  if claimed <> '{}' then
    return query select null::uuid[], null::integer, null::uuid, null::boolean, d.* from read_claimed_deliveries(at, claimed, token) d;
  end if;
end $$;
