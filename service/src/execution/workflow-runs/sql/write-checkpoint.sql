-- Writes the progress of a run if its lease is still held and no signal is unread; else it writes nothing. `checksOwner`: nor if the owner
-- is banned. Fragments:
--   history          locks the execution first, as a cancellation and a deletion do: the other order would deadlock
--   isHistoryLocked  the condition that `history` found its row
--   move             updates the execution
--   updateStep       the end of the insert of steps
--   calls            ends and reserves provider calls
--   endedRow         the columns of the ended execution, or null
with :history
held as (
  update workflow_runs
     -- A lease that was just renewed stays, so that the row's indexes need no change.
     set due_at = case when :keepsLease and due_at > :renewedUntil then due_at else :dueAt end, lease_token = case when :keepsLease then lease_token end, leases = 0
   where execution_id = :id and lease_token = :token and signals = :signals :isHistoryLocked
     and not (:checksOwner and exists (select from users where id = :userId and banned_at is not null))
  returning execution_id),
:move
steps as (
  insert into execution_steps as s (
    execution_id, step_id, item, n, type, status, attempt, retries, repeats, items, called, due_at, sealed_output, error_code,
    error_message, provider, model, prompt_tokens, completion_tokens, cost_usd, cost_known, usage_estimated, started_at, ended_at)
  select held.execution_id, "stepId", item, n, type, status, attempt, retries, repeats, items, "childRunId", "dueAt", "sealedOutput", "errorCode",
         "errorMessage", provider, model, "promptTokens", "completionTokens", "costUsd", "costKnown", estimated, "startedAt", "endedAt"
    from held, jsonb_to_recordset(:steps::jsonb) as step (
      "stepId" text, item integer, n integer, type text, status text, attempt integer, retries integer, repeats integer, items integer,
      "childRunId" uuid, "dueAt" timestamptz, "sealedOutput" text, "errorCode" text, "errorMessage" text, provider text, model text,
      "promptTokens" bigint, "completionTokens" bigint, "costUsd" numeric, "costKnown" boolean, estimated boolean, "startedAt" timestamptz,
      "endedAt" timestamptz)
  :updateStep),
events as (
  insert into execution_events (execution_id, seq, type, data, created_at)
  select held.execution_id, seq, type, data, "createdAt"
    from held, jsonb_to_recordset(:events::jsonb) as event (seq integer, type text, data jsonb, "createdAt" timestamptz)),
:calls
select exists (select from held) as "isWritten", :reservations as reservations,
       (select pg_notify('workflow_end', execution_id::text) from held where :notifiesEnd),
       exists (select from workflow_runs where execution_id = :id and lease_token = :token) as "isHeld",
       :checksOwner and exists (select from users where id = :userId and banned_at is not null) as "isOwnerBanned",
       :endedRow as "endedRow"
