-- Inserts runs under the leases of their workers and, where a run has them, its first steps with their calls. Returns the ids of those
-- whose targets are as their process remembers them, and whose owners are not banned. Fragments:
--   isSameProduct, isSameKey  the conditions, for a row of `asked` and of `key`
--   steps                     inserts steps and events of `begun`
--   calls                     opens the provider calls of `opened`
with begun as materialized (
  select *
    from json_to_recordset(:runs::json) as asked (
      id uuid, "userId" uuid, "productId" uuid, "productVersion" text, "productRevision" integer, "productMajor" integer, "newStatus" text,
      "sealedTexts" text, "sealedStart" text, "createdAt" timestamptz, "dueAt" timestamptz, "leaseToken" uuid, "leaseWorker" integer,
      leases smallint)
   where :isSameProduct
     and not exists (select from users where id = asked."userId" and banned_at is not null)
     and not exists (select
                       from json_to_recordset(:keys::json) as key (
                         "runId" uuid, "keyId" uuid, "sealedKey" text, "keyStatus" text, "hasBudget" boolean, "hasConcurrencyLimit" boolean)
                      where key."runId" = asked.id and not :isSameKey)),
history as (
  insert into executions (id, type, user_id, product_id, product_version, mode, status, sealed_texts, created_at)
  select id, 'WORKFLOW', "userId", "productId", "productVersion", 'async', "newStatus", "sealedTexts", "createdAt" from begun),
runs as (
  insert into workflow_runs (execution_id, user_id, sealed_start, due_at, lease_token, lease_worker, leases)
  select id, "userId", "sealedStart", "dueAt", "leaseToken", "leaseWorker", leases from begun),
:steps,
opened as materialized (
  select call.*
    from begun join json_to_recordset(:opened::json) as call (
      id uuid, "callId" uuid, "keyId" uuid, "callStartedAt" timestamptz, "callLeaseUntil" timestamptz) on call.id = begun.id),
:calls
select id from begun
