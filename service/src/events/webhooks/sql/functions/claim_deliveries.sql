-- Version 1

-- Leases at most `max_count` due deliveries of the slow queues, or of the others. The queue that has waited longest comes first. In flight are
-- at most max_in_flight for an endpoint, 32 for an account and `per_account` of an account in this kind of queue. One statement locks the
-- queues and the next, whose snapshot is newer, counts: in one statement, deliveries that another worker had just leased were missed, and
-- so were wake-ups.
-- Hash and merge joins are off: cached plans are made while the tables are small, and a sequential scan would stay when they grow.
create or replace function claim_deliveries(at timestamptz, slow boolean, max_count integer, per_account integer, token uuid, until timestamptz, worker integer)
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
