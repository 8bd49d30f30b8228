-- Completes runs with their provider calls, and returns their ids. It leaves out a run that has ended or was deleted, and one whose rows
-- another transaction has locked: waiting for it would delay the other runs, or deadlock with it. A row that this statement has locked
-- is found by its position, so that no plan reads a whole table. A row that changed between the snapshot and the lock has another
-- position, which the snapshot does not see; then the run stays as it is.
with ended as materialized (
  select run.*, execution.ctid as execution, call.ctid as call
    from json_to_recordset(:runs::json) as run (
           id uuid, "callId" uuid, "callUsd" numeric, "callEndedAt" timestamptz, model text, "finishReason" text, "sealedTexts" text,
           attempts smallint, "promptTokens" bigint, "completionTokens" bigint, "costUsd" numeric, "costKnown" boolean, "priceList" text,
           "usageEstimated" boolean, "durationMs" bigint, "completedAt" timestamptz),
         lateral (select ctid from executions e
                   where e.id = run.id and status = 'running' and deleted_at is null limit 1 for no key update skip locked) execution,
         lateral (select ctid from provider_calls c
                   where c.id = run."callId" and ended_at is null limit 1 for no key update skip locked) call),
calls as (
  update provider_calls c set cost_usd = "callUsd", ended_at = "callEndedAt" from ended where c.ctid = ended.call
  returning c.id)
update executions e
   set status = 'completed', model = ended.model, finish_reason = "finishReason", sealed_texts = "sealedTexts", attempts = ended.attempts,
       prompt_tokens = "promptTokens", completion_tokens = "completionTokens", cost_usd = "costUsd", cost_known = "costKnown",
       price_list = "priceList", usage_estimated = "usageEstimated", duration_ms = "durationMs", completed_at = "completedAt"
  from ended join calls on calls.id = "callId" where e.ctid = ended.execution
returning e.id
