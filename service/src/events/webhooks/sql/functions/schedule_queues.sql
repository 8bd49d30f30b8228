-- Version 1

-- Sets when the queues are due next. A queue that still has due deliveries is full: the end of an attempt wakes it, and 250 ms are the
-- fallback. `is_cut`: the claim reached its limit and may have passed over a queue, so the queue stays due.
-- Hash and merge joins are off: cached plans are made while the tables are small, and a sequential scan would stay when they grow.
create or replace function schedule_queues(queues uuid[], at timestamptz, is_cut boolean) returns void
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
