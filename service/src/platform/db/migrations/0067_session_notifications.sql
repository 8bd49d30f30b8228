-- Processes cache sessions and evict them on this notification. Not for last_seen_at, which changes often and only prolongs a session.
create function notify_session_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('session_changed', old.id::text);
  return null;
end $$;
create trigger sessions_changed
  after update of user_id, second_factor, created_at, expires_at, ended_at on sessions
  for each row
  when ((old.user_id, old.second_factor, old.created_at, old.expires_at, old.ended_at)
        is distinct from (new.user_id, new.second_factor, new.created_at, new.expires_at, new.ended_at))
  execute function notify_session_changed();
-- The end of a session has evicted it already.
create trigger sessions_deleted
  after delete on sessions
  for each row
  when (old.ended_at is null)
  execute function notify_session_changed();

create function notify_view_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('session_changed', coalesce(new.session_id, old.session_id)::text);
  return null;
end $$;
create trigger account_views_changed
  after insert or update or delete on account_views
  for each row execute function notify_view_changed();
