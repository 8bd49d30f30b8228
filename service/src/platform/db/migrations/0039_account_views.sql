-- An administrator's session that reads as another account. The audit log has the history.
create table account_views (
  session_id uuid primary key references sessions on delete cascade,
  user_id uuid not null references users on delete cascade,
  started_at timestamptz not null,
  expires_at timestamptz not null,
  check (expires_at > started_at)
);
create index account_views_user on account_views (user_id);
create trigger open_account before insert on account_views
  for each row execute function must_not_be_closed('user_id');
