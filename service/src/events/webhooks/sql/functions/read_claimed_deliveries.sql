-- Version 1

-- The leased deliveries with everything that an attempt needs. Secrets are the active ones, newest first.
-- Hash and merge joins are off: cached plans are made while the tables are small, and a sequential scan would stay when they grow.
create or replace function read_claimed_deliveries(at timestamptz, ids uuid[], token uuid)
returns table (
  id uuid, event_id uuid, endpoint_id uuid, status text, attempts integer, scheduled_attempts smallint, is_manual boolean,
  resume_at timestamptz, lease_token uuid, body text, sealed_body text, user_id uuid, url text, content text, prefix boolean, secrets json)
language sql set enable_hashjoin = off set enable_mergejoin = off as $$
  select d.id, d.event_id, d.endpoint_id, d.status, d.attempts, d.scheduled_attempts, d.is_manual, d.resume_at, d.lease_token,
         e.body, e.sealed_body, p.user_id, p.url, p.signature_content, p.signature_prefix,
         (select coalesce(json_agg(json_build_object('id', s.id, 'sealed', s.sealed_secret) order by s.activates_at desc, s.id desc), '[]')
            from webhook_secrets s
           where s.endpoint_id = coalesce(p.signs_as, p.id) and s.activates_at <= at and (s.expires_at is null or s.expires_at > at))
    from unnest(ids) as claimed (id)
    join webhook_deliveries d on d.id = claimed.id and d.lease_token = token
    join events e on e.id = d.event_id join webhook_endpoints p on p.id = d.endpoint_id;
$$;
