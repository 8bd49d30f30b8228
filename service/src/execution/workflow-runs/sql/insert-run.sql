-- Inserts the execution (`history`), its run and its first event, and wakes the workers if none has the lease of the run yet.
with history as (:history),
written as (
  insert into workflow_runs (execution_id, user_id, sealed_start, due_at, lease_token, lease_worker, leases, depth, parent_id, parent_step, parent_item, parent_attempt)
  values (:id, :userId, :sealedStart, :dueAt, :leaseToken, :leaseWorker, :leases, :depth, :parentId, :parentStep, :parentItem, :parentAttempt)
  returning execution_id as id, lease_token),
reported as (
  insert into execution_events (execution_id, seq, type, data, created_at)
  select id, 1, 'execution.queued', '{}', :createdAt::timestamptz from written)
select pg_notify('workflow_due', id::text) from written where lease_token is null
