-- One database, one environment: what the database belongs to, written once.
create table installation (
  singleton boolean primary key default true check (singleton),
  environment text not null check (environment in ('test', 'production')),
  -- Of the primary master key at the first start: another keyring could open nothing in here.
  master_key_fingerprint text not null,
  -- Of the demo shop: none yet, stocking (a start that died meanwhile begins anew), stocked (it goes on with the
  -- sales), loaded, or removed for good.
  demo text not null default 'none' check (demo in ('none', 'stocking', 'stocked', 'loaded', 'removed')),
  created_at timestamptz not null
);

create table users (
  id uuid primary key,
  email text not null,
  name text not null,
  bio text not null default '',
  role text not null default 'user' check (role in ('user', 'seller', 'admin')),
  plan text not null default 'free' check (plan in ('free', 'pro', 'business', 'enterprise')),
  -- Their own numbers in the place of the plan's: [{"requests": 5000, "seconds": 3600}].
  quota jsonb,
  -- Argon2id; works once the mailbox is proven, whose first proof wipes it otherwise.
  password_hash text,
  -- When somebody first proved to read this mailbox: before, nobody gets in by a password.
  email_verified_at timestamptz,
  -- The badge beside an author's name: moderators give it, a proven mailbox does not.
  verified boolean not null default false,
  -- Set: nobody gets in by any credential of theirs.
  banned_at timestamptz,
  ban_reason text,
  -- Closed for good: what the books need stays, name and address are gone.
  closed_at timestamptz,
  refund_days smallint not null default 14 check (refund_days in (0, 7, 14, 30)),
  -- What a referrer gets of their sales, where a product says nothing else.
  commission_basis_points integer not null default 1000 check (commission_basis_points between 0 and 10000),
  -- ISO 3166-1 alpha-2: where they buy from. null: not said.
  country text check (country ~ '^[A-Z]{2}$'),
  demo boolean not null default false,
  created_at timestamptz not null
);
create unique index users_email on users (lower(email));

create table api_keys (
  id uuid primary key,
  user_id uuid not null references users on delete cascade,
  -- The twelve public characters inside the key: what a key is looked up by.
  lookup text not null unique,
  digest bytea not null,
  name text not null,
  permissions text[] not null,
  created_at timestamptz not null,
  expires_at timestamptz,
  -- Set when another key took its place: it works on until expires_at, so that its users can change over.
  replaced_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  -- Days before the expiry of the last email about it.
  expiry_emailed_days smallint
);
create index api_keys_user on api_keys (user_id, id);
create index api_keys_expiring on api_keys (expires_at) where revoked_at is null and replaced_at is null;

-- Processes cache keys and evict them on this notification. Not for last_used_at, which changes often and decides nothing.
create function notify_key_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('api_key_changed', old.lookup);
  return null;
end $$;
create trigger api_keys_changed
  after delete or update of digest, permissions, expires_at, revoked_at on api_keys
  for each row execute function notify_key_changed();

create function notify_user_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('user_changed', old.id::text);
  return null;
end $$;
create trigger users_changed
  after update of role, plan, quota, banned_at, closed_at on users
  for each row
  when ((old.role, old.plan, old.quota, old.banned_at, old.closed_at)
        is distinct from (new.role, new.plan, new.quota, new.banned_at, new.closed_at))
  execute function notify_user_changed();

create table idempotency_keys (
  caller text not null,
  route text not null,
  key text not null,
  request_digest bytea not null,
  -- Fences a request whose lease ran out: its late answer must not overwrite that of the one which took over.
  lease_token uuid not null,
  lease_until timestamptz not null,
  -- The advisory lock of the process that runs the request: when it is gone, so is the process. null: not known.
  process_lock integer,
  -- What the request wrote, from the transaction that wrote it: a repeat reads that, and acts no second time.
  sealed_resource text,
  status smallint,
  sealed_body text,
  created_at timestamptz not null,
  primary key (caller, route, key)
);
create index idempotency_keys_created on idempotency_keys (created_at);
