-- Version 1

-- Records attempts as record_attempts does. Returns false, and changes nothing, if a lock takes longer or a row is refused: the caller goes on
-- with other work, and records them by a statement of its own.
create or replace function try_record_attempts(results jsonb) returns boolean
language plpgsql set lock_timeout = '50ms' as $$
begin
  perform record_attempts(results);
  return true;
exception when others then
  return false;
end $$;
