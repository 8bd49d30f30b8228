-- Version 2

-- Records attempts and returns the ids of those that were accepted. An attempt whose lease has passed to another worker is logged as late
-- and changes nothing.
-- Hash joins, merge joins and sequential scans are off: cached plans are made while the tables are small, and reading them whole would stay
-- when they grow. For the same reason each delivery is looked up by its id and updated by its place, which the locked queue keeps.
create or replace function record_attempts(results jsonb) returns setof uuid
language plpgsql set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off as $$
#variable_conflict use_column
begin
  perform from webhook_queues where endpoint_id in (select (r ->> 'endpoint_id')::uuid from jsonb_array_elements(results) r)
    order by endpoint_id for no key update;
  return query
  with result as materialized (
    select r.*, d.place,
           case when d.lease_token = r.token then 'moved'
                -- The endpoint was disabled or deleted during the attempt, and no other attempt was made since.
                when d.lease_token is null and d.due_at is null and d.attempts = r.n - 1 then 'overtaken'
                else 'late' end as effect
      from jsonb_to_recordset(results) as r (
             id uuid, attempt_id uuid, endpoint_id uuid, token uuid, n integer, started_at timestamptz, ended_at timestamptz,
             duration_ms integer, url text, request_headers jsonb, answer integer, response_headers jsonb, response_body text, error text,
             status text, scheduled_attempts smallint, due_at timestamptz, blocked_until timestamptz, is_exhausted boolean, pace text)
     cross join lateral (select ctid as place, lease_token, due_at, attempts from webhook_deliveries where id = r.id offset 0) d),
  moved as (
    update webhook_deliveries d
       set status = r.status, attempts = r.n, scheduled_attempts = r.scheduled_attempts, due_at = r.due_at,
           is_manual = false, resume_at = null, is_urgent = false, lease_token = null, lease_until = null, leased_by = null, leases = 0,
           ended_at = case when r.due_at is null then r.ended_at end
      from result r where d.ctid = r.place and r.effect = 'moved'
    returning r.attempt_id, d.endpoint_id, d.due_at, r.ended_at, r.blocked_until, r.is_exhausted, r.pace, r.error is null as is_success),
  overtaken as (
    update webhook_deliveries d
       set attempts = r.n, status = case when r.error is null then 'succeeded' else d.status end
      from result r where d.ctid = r.place and r.effect = 'overtaken'),
  logged as (
    insert into webhook_attempts (id, delivery_id, n, is_late, started_at, duration_ms, url, request_headers, status, response_headers, response_body, error)
    select attempt_id, id, n, effect = 'late', started_at, duration_ms, url, request_headers, answer, response_headers, response_body, error
      from result),
  paced as (
    select m.*, l.ctid as place, l.next_due, l.blocked_until as old_blocked_until, l.max_in_flight as old_max_in_flight,
           least(case when m.quick < m.attempts then 7 else 8 end, greatest(1, l.max_in_flight >> least(m.hung, 3)::integer) + m.quick)
             as max_in_flight,
           -- Capacity is free again: the queue is due when its first delivery is. Those of this batch are still leased in this snapshot.
           (select due_at from webhook_deliveries
             where endpoint_id = m.endpoint_id and due_at is not null and lease_token is null
             order by due_at, id limit 1) as first_due
      from (select endpoint_id, min(due_at) as due_at, max(blocked_until) as blocked_until, count(*) as attempts,
                   count(*) filter (where pace = 'hung') as hung, count(*) filter (where pace = 'quick') as quick
              from moved group by endpoint_id) m
     cross join lateral (select ctid, next_due, blocked_until, max_in_flight from webhook_queues where endpoint_id = m.endpoint_id offset 0) l),
  woken as (
    update webhook_queues l
       set next_due = least(l.next_due, p.due_at, p.first_due), blocked_until = greatest(l.blocked_until, p.blocked_until),
           max_in_flight = p.max_in_flight
      from paced p
     where l.ctid = p.place
       -- Most attempts change nothing here.
       and (least(p.due_at, p.first_due) < p.next_due or p.blocked_until > p.old_blocked_until or p.max_in_flight <> p.old_max_in_flight)),
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
