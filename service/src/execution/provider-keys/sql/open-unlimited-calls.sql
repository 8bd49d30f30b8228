-- Parts of the `with` of another room's statement. Opens the calls of its rows, whose keys have neither a budget nor a limit of
-- parallel calls, as reserve_provider_call() does.
opened_calls as (
  insert into provider_calls (id, provider_key_id, execution_id, started_at, expected_usd, lease_until)
  select "callId", "keyId", id, "callStartedAt", 0, "callLeaseUntil" from :rows),
used_keys as (
  update provider_keys set last_used_at = (select max("callStartedAt") from :rows)
   where id in (select id from provider_keys where id in (select "keyId" from :rows) for no key update skip locked))
