-- Writes checkpoints of several runs, as write-checkpoint does for one, and returns those that it wrote. It leaves out each checkpoint
-- whose lease or signals are no longer those of its driver, whose owner is banned, or that uses a key with limits or a changed one; and,
-- because waiting would delay the other runs or deadlock with them, one whose rows another transaction has locked. The conditions are
-- checked under the locks, and all writes follow from them.
--   isSameKey     the condition for a row of `opened`
--   steps         inserts steps and events of `held`
--   calls         opens the provider calls of `begun`
--   endedColumns  of an ended execution
with asked as materialized (
  select *
    from json_to_recordset(:checkpoints::json) as checkpoint (
      id uuid, "userId" uuid, token uuid, signals integer, "dueAt" timestamptz, "keepsLease" boolean, "renewedUntil" timestamptz,
      "checksOwner" boolean, "returnsEnd" boolean, "callEnds" integer, "newStatus" text, "sealedTexts" text, "errorCode" text,
      "errorMessage" text, "promptTokens" bigint, "completionTokens" bigint, "costUsd" numeric, "costKnown" boolean, estimated boolean,
      "priceList" text, "durationMs" bigint, "completedAt" timestamptz)),
ended as materialized (
  select call_end.*
    from json_to_recordset(:ended::json) as call_end ("runId" uuid, "callId" uuid, "costUsd" numeric, "endedAt" timestamptz),
         lateral (select from provider_calls c
                   where c.id = call_end."callId" and coalesce(c.ended_at, 'infinity') = 'infinity'
                   limit 1 for no key update skip locked) call),
opened as materialized (
  select *
    from json_to_recordset(:opened::json) as opened (
      id uuid, "callId" uuid, "keyId" uuid, "sealedKey" text, "keyStatus" text, "callStartedAt" timestamptz, "callLeaseUntil" timestamptz)),
held as materialized (
  select asked.*
    from asked
    -- First, as in write-checkpoint.
    left join lateral (select id from executions e
                        where asked."newStatus" is not null and e.id = asked.id and e.type = 'WORKFLOW' and e.status = any (:from)
                        limit 1 for no key update skip locked) execution on true
   cross join lateral (select from workflow_runs r
                        where r.execution_id = asked.id and r.lease_token = asked.token and r.signals = asked.signals
                        limit 1 for no key update skip locked) run
   where (asked."newStatus" is null or execution.id is not null)
     and not (asked."checksOwner" and exists (select from users where id = asked."userId" and banned_at is not null))
     and (select count(*) from ended where "runId" = asked.id) = asked."callEnds"
     and not exists (select from opened where opened.id = asked.id and not :isSameKey)),
runs as (
  update workflow_runs r
     -- A lease that was just renewed stays, so that the row's indexes need no change.
     set due_at = case when held."keepsLease" and r.due_at > held."renewedUntil" then r.due_at else held."dueAt" end,
         lease_token = case when held."keepsLease" then r.lease_token end, leases = 0
    from held where r.execution_id = held.id and r.execution_id = any (:ids::uuid[])),
moved as (
  update executions e
     set status = held."newStatus",
         sealed_texts = case when e.deleted_at is null then coalesce(held."sealedTexts", e.sealed_texts) end,
         error_code = coalesce(held."errorCode", e.error_code),
         error_message = coalesce(held."errorMessage", e.error_message),
         prompt_tokens = coalesce(held."promptTokens", e.prompt_tokens),
         completion_tokens = coalesce(held."completionTokens", e.completion_tokens),
         cost_usd = coalesce(held."costUsd", e.cost_usd),
         cost_known = coalesce(held."costKnown", e.cost_known),
         usage_estimated = coalesce(held.estimated, e.usage_estimated),
         price_list = coalesce(held."priceList", e.price_list),
         duration_ms = coalesce(held."durationMs", e.duration_ms),
         completed_at = coalesce(held."completedAt", e.completed_at)
    from held where held."newStatus" is not null and e.id = held.id and e.id = any (:ids::uuid[])
  returning e.id as "movedId", :endedColumns),
:steps,
ended_calls as (
  update provider_calls c set cost_usd = ended."costUsd", ended_at = ended."endedAt"
    from ended join held on held.id = "runId" where c.id = ended."callId" and c.id = any (:endedIds::uuid[])),
begun as (select opened.* from opened join held on held.id = opened.id),
:calls
select held.id, (select pg_notify('workflow_end', held.id::text) where held."dueAt" is null),
       case when held."returnsEnd" then (select to_jsonb(moved) from moved where "movedId" = held.id and deleted_at is null) end as "endedRow"
  from held
