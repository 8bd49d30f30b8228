-- Read at every request that a session makes: ending the row ends the session, whatever its token says.
create table sessions (
  id uuid primary key,
  user_id uuid not null references users on delete cascade,
  -- Whether a code of the second factor was given.
  second_factor boolean not null,
  -- magic-link, password, github, google, operator …
  via text not null,
  ip text not null,
  user_agent text,
  created_at timestamptz not null,
  last_seen_at timestamptz not null,
  expires_at timestamptz not null,
  ended_at timestamptz
);
create index sessions_user on sessions (user_id, created_at);

-- Magic links, challenges of the second factor and the like: redeemed once, by whoever is first.
create table one_time_tokens (
  digest bytea primary key,
  purpose text not null,
  email text,
  user_id uuid references users on delete cascade,
  data jsonb not null default '{}',
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz
);
create index one_time_tokens_expires on one_time_tokens (expires_at);
create index one_time_tokens_user on one_time_tokens (user_id);

-- How often something was tried, by whom. Of the address, network or account that tried only a digest is kept: most
-- addresses in here have no account, and are nobody's business.
create table sign_in_attempts (
  kind text not null,
  subject bytea not null,
  -- Within the longest window of the kind.
  tried_at timestamptz[] not null,
  last_at timestamptz not null,
  primary key (kind, subject)
);
create index sign_in_attempts_last on sign_in_attempts (last_at);
