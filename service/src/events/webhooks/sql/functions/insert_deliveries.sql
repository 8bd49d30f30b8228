-- Version 2

-- Due now when the endpoint is enabled and its owner not banned, else skipped; none when the endpoint is no longer subscribed to the type.
-- The caller holds the locks of the queues.
-- Hash and merge joins are off: cached plans are made while the tables are small, and a sequential scan would stay when they grow.
create or replace function insert_deliveries(ids uuid[], event_ids uuid[], endpoint_ids uuid[], at timestamptz, urgent boolean) returns void
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
   where endpoint_id = any (endpoint_ids) and (next_due > at or urgent and not has_urgent);
$$;
