-- Parts of the `with` of another room's statement. If `condition` holds, calls end and others are reserved in the order of their
-- keys. Every statement that locks several keys uses this order. `changed`: the key differs from the one that the caller read.
ended_calls as (
  update provider_calls c set cost_usd = ended."costUsd", ended_at = ended."endedAt"
    from jsonb_to_recordset(:ended::jsonb) as ended ("callId" uuid, "costUsd" numeric, "endedAt" timestamptz)
   where :condition and c.id = ended."callId" and c.id = any (:endedIds::uuid[])
     -- Not `is null`: the planner would read the index of open calls, with all calls that ended since its last vacuum.
     and coalesce(c.ended_at, 'infinity') = 'infinity'
  returning c.id),
opened_calls as materialized (
  select opened."callId",
         case when exists (select from provider_keys k
                            where k.id = opened."providerKeyId" and k.sealed_key = opened."sealedKey"
                              and k.status = opened.status and (k.monthly_budget_usd is not null) = opened."hasBudget")
              then reserve_provider_call(opened."callId", opened."providerKeyId", opened."executionId", opened."promptUsd", opened."tokenUsd",
                                         opened."maxTokens", opened."minTokens", coalesce(opened."abandonedUsd", 0), opened."startedAt",
                                         opened."monthStart", opened."leaseUntil")
              else '{"refusedBy": "changed"}' end as reserved
    from jsonb_to_recordset(:opened::jsonb) as opened (
           "callId" uuid, "providerKeyId" uuid, "executionId" uuid, "promptUsd" numeric, "tokenUsd" numeric, "maxTokens" integer,
           "minTokens" integer, "abandonedUsd" numeric, "startedAt" timestamptz, "monthStart" timestamptz, "leaseUntil" timestamptz,
           "sealedKey" text, status text, "hasBudget" boolean)
   where :condition and (select count(*) from ended_calls) >= 0)
