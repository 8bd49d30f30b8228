-- What came of a run is in the event of its callback, too: sealed there, and erased with the run.
alter table events
  add column execution_id uuid,
  -- The exact bytes, as `body` would have them; `body` is then without the run's output, for after it is erased.
  add column sealed_body text;
create index events_execution on events (execution_id) where sealed_body is not null;

create function erase_callback_results() returns trigger language plpgsql as $$
begin
  update events set sealed_body = null where execution_id = new.id and sealed_body is not null;
  return null;
end $$;

-- Whichever way the texts of a run go: it is deleted, they are old, or its owner's account is closed.
create trigger executions_erased after update of sealed_texts, deleted_at on executions
  for each row when (new.sealed_texts is null and (old.sealed_texts is not null or new.deleted_at is distinct from old.deleted_at))
  execute function erase_callback_results();
