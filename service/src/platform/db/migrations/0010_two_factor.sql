-- Authenticator apps, one an account.
create table authenticators (
  user_id uuid primary key references users on delete cascade,
  -- Sealed with the account in its context: copied to another row, it does not open.
  sealed_secret text not null,
  created_at timestamptz not null,
  -- null: set up, but no code of it was given yet; sign-in does not ask for one.
  confirmed_at timestamptz,
  -- The time step of the newest code that was accepted: it and those before it never are again.
  last_step integer not null default 0,
  -- Raised before a code is judged, taken back by a right one.
  tries smallint not null default 0,
  locked_until timestamptz
);

-- Only digests: a leaked table must not open accounts.
create table backup_codes (
  user_id uuid not null references authenticators on delete cascade,
  digest bytea not null,
  used_at timestamptz,
  primary key (user_id, digest)
);
