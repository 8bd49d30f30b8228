-- Inserts the execution (`history`), its run and its first event, and wakes the workers.
with history as (:history),
written as (
  insert into workflow_runs (execution_id, user_id, sealed_start, due_at, depth, parent_id, parent_step, parent_item, parent_attempt)
  values (:id, :userId, :sealedStart, :dueAt, :depth, :parentId, :parentStep, :parentItem, :parentAttempt)
  returning execution_id as id),
reported as (
  insert into execution_events (execution_id, seq, type, data, created_at)
  select id, 1, 'execution.queued', '{}', :createdAt::timestamptz from written)
select pg_notify('workflow_due', id::text) from written
