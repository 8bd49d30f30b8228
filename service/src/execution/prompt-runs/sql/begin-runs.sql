-- Begins runs on keys without limits, and returns the ids of those that began: the database has the same product, right and key as
-- their process remembers. Fragments:
--   isSameProduct, isSameKey  the conditions, for a row of `asked`
--   calls                     opens the provider calls of `begun`
with begun as materialized (
  select *
    from json_to_recordset(:runs::json) as asked (
      id uuid, "userId" uuid, "productId" uuid, "productRevision" integer, "productMajor" integer, "productVersion" text, "keyId" uuid,
      "sealedKey" text, "keyStatus" text, provider text, model text, mode text, "createdAt" timestamptz, "leaseUntil" timestamptz,
      "callId" uuid, "callStartedAt" timestamptz, "callLeaseUntil" timestamptz)
   where :isSameProduct and :isSameKey),
:calls,
written as (
  insert into executions (id, user_id, product_id, product_version, provider_key_id, provider, model, mode, status, lease_until, created_at)
  select id, "userId", "productId", "productVersion", "keyId", provider, model, mode, 'running', "leaseUntil", "createdAt" from begun)
select id from begun
