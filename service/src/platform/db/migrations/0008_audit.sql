-- Who did what, when and from where; never a secret. Rows outlive the people in them, hence no foreign keys.
create table audit_log (
  id uuid primary key,
  -- null: the operator at the command line, or the service by itself.
  actor_id uuid,
  action text not null,
  target_type text,
  target_id text,
  ip text,
  user_agent text,
  request_id text,
  details jsonb not null default '{}',
  created_at timestamptz not null
);
create index audit_log_action on audit_log (action, id);
create index audit_log_actor on audit_log (actor_id, id);
create index audit_log_target on audit_log (target_id, id);

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name;
end $$;
create trigger audit_log_append_only before update or delete on audit_log
  for each row execute function refuse_change();
create trigger audit_log_no_truncate before truncate on audit_log
  for each statement execute function refuse_change();
