-- An account's API requests of the last days. Without bodies, queries and keys.
create table request_logs (
  -- Version 7: in order of time.
  id uuid primary key,
  user_id uuid not null references users on delete cascade,
  at timestamptz not null,
  request_id text not null,
  method text not null,
  path text not null,
  operation text,
  status smallint not null,
  error_code text,
  duration_ms real not null,
  credential text not null check (credential in ('key', 'session', 'token')),
  api_key_id uuid,
  user_agent text
);
create index request_logs_user on request_logs (user_id, id desc);
create index request_logs_errors on request_logs (user_id, id desc) where status >= 400;
create index request_logs_key on request_logs (api_key_id, id desc) where api_key_id is not null;
