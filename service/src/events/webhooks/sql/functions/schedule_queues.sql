-- Version 2

-- Sets when the queues are due next. A queue that still has due deliveries is full: the end of an attempt wakes it, and 250 ms are the
-- fallback. `is_cut`: the claim reached its limit and may have passed over a queue, so the queue stays due. It goes behind the others only
-- if a claim, which looks at 64 queues, may have left some out: most updates change nothing.
-- Hash and merge joins are off: cached plans are made while the tables are small, and a sequential scan would stay when they grow.
create or replace function schedule_queues(queues uuid[], at timestamptz, is_cut boolean) returns void
language sql set enable_hashjoin = off set enable_mergejoin = off as $$
  update webhook_queues l set next_due = new.next_due, has_urgent = new.has_urgent
    from (
      select queue.id, held.next_due as old_next_due, held.has_urgent as old_has_urgent,
             case when first.due_at > at then first.due_at
                  when first.due_at is null then 'infinity'
                  when not is_cut then at + interval '250 ms'
                  when cardinality(queues) < 64 then least(held.next_due, at)
                  else at end as next_due,
             exists (select from webhook_deliveries
                      where endpoint_id = queue.id and is_urgent and due_at is not null and lease_token is null) as has_urgent
        from unnest(queues) as queue (id)
       cross join lateral (select next_due, has_urgent from webhook_queues where endpoint_id = queue.id offset 0) held
        left join lateral (select due_at from webhook_deliveries
                            where endpoint_id = queue.id and due_at is not null and lease_token is null
                            order by due_at, id limit 1) first on true) new
   where l.endpoint_id = new.id and (new.next_due <> new.old_next_due or new.has_urgent <> new.old_has_urgent);
$$;
