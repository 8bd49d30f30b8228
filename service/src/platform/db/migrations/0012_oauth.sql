-- Our own OAuth 2.0 server. What it hands out is known here by its SHA-256 alone: a copy of these tables opens nothing.

-- Made once, by whichever process needs them first, and shared by all.
create table oauth_signing_keys (
  algorithm text primary key check (algorithm in ('RS256', 'ES256', 'EdDSA')),
  sealed_jwk text not null,
  created_at timestamptz not null
);

create table oauth_clients (
  id text primary key,
  -- null: it registered itself.
  owner_id uuid references users on delete cascade,
  name text not null,
  redirect_uris text[] not null,
  post_logout_redirect_uris text[] not null,
  grant_types text[] not null,
  id_token_algorithm text not null default 'RS256' check (id_token_algorithm in ('RS256', 'ES256', 'EdDSA')),
  -- What it may ask for; null: whatever its user allows.
  permissions text[],
  -- null: a public client, which can keep no secret.
  secret_digest bytea,
  -- The network that registered it, which may do so only so often.
  registered_from text,
  created_at timestamptz not null,
  check ((owner_id is null) = (secret_digest is null))
);
create index oauth_clients_owner on oauth_clients (owner_id);
create index oauth_clients_registered on oauth_clients (registered_from, created_at) where owner_id is null;

-- What a person allowed a client. Tokens hang on it: taking it back takes them all.
create table oauth_grants (
  id uuid primary key,
  user_id uuid not null references users on delete cascade,
  client_id text not null references oauth_clients on delete cascade,
  -- {"openid": {"scope": "openid email"}, "resources": {"https://…/v1": "products:read"}}
  allowed jsonb not null,
  created_at timestamptz not null,
  last_used_at timestamptz,
  expires_at timestamptz not null
);
create index oauth_grants_user on oauth_grants (user_id, client_id);
create index oauth_grants_client on oauth_grants (client_id);
create index oauth_grants_expires on oauth_grants (expires_at);

create table oauth_tokens (
  digest bytea primary key,
  kind text not null check (kind in ('AccessToken', 'ClientCredentials', 'RefreshToken', 'AuthorizationCode')),
  -- Whom it acts for: who allowed it, or the owner of the client (client credentials).
  user_id uuid not null references users on delete cascade,
  client_id text not null references oauth_clients on delete cascade,
  -- null: client credentials.
  grant_id uuid references oauth_grants on delete cascade,
  audience text,
  scope text not null,
  -- json, not jsonb, which refuses the \u0000 that a client may put into its nonce or state.
  payload json not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  -- Codes and refresh tokens are used once; the row stays, so that a second use is noticed.
  consumed_at timestamptz
);
create index oauth_tokens_user on oauth_tokens (user_id);
create index oauth_tokens_client on oauth_tokens (client_id);
create index oauth_tokens_grant on oauth_tokens (grant_id);
create index oauth_tokens_expires on oauth_tokens (expires_at);

-- A token is worth something while its user, and whoever owns its client, may enter.
create view oauth_usable_tokens as
  select t.*, u.role, u.plan, u.quota
    from oauth_tokens t
    join users u on u.id = t.user_id
    join oauth_clients c on c.id = t.client_id
    left join users o on o.id = c.owner_id
   where u.banned_at is null and u.closed_at is null and o.banned_at is null and o.closed_at is null;

-- Browsers on their way through sign-in and consent, and requests that clients pushed ahead.
create table oauth_flows (
  digest bytea primary key,
  kind text not null check (kind in ('Session', 'Interaction', 'PushedAuthorizationRequest')),
  -- Of a session: what interactions name it by. It is no cookie.
  uid text,
  payload json not null,
  expires_at timestamptz not null,
  consumed_at timestamptz
);
create index oauth_flows_uid on oauth_flows (uid) where uid is not null;
create index oauth_flows_expires on oauth_flows (expires_at);
