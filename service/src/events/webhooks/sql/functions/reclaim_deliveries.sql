-- Version 1

-- Frees expired leases and those of the `dead` workers. The caller gets a lease of each delivery that killed several workers, to record it as
-- failed.
-- Hash and merge joins are off: cached plans are made while the tables are small, and a sequential scan would stay when they grow.
create or replace function reclaim_deliveries(at timestamptz, dead integer[], token uuid, until timestamptz, worker integer)
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
