-- Version 1

-- Passes the cancellation or deletion of an execution on to its run. A trigger, because the rooms that write these columns do not import the
-- engine.
create or replace function signal_workflow_run() returns trigger language plpgsql as $$
begin
  if new.deleted_at is not null and old.deleted_at is null then
    -- The result stays for the parent run, which may not have read it yet.
    update workflow_runs c set sealed_start = null
      from workflow_runs p join executions e on e.id = p.execution_id
     where c.execution_id = new.id and p.execution_id = c.parent_id and p.due_at is not null and e.deleted_at is null;
    if found then
      delete from execution_steps where execution_id = new.id;
      delete from execution_events where execution_id = new.id;
      return null;
    end if;
    delete from workflow_runs c using executions e
     where c.parent_id = new.id and e.id = c.execution_id and e.deleted_at is not null;
    delete from workflow_runs where execution_id = new.id;
  elsif new.cancel_requested_at is not null and old.cancel_requested_at is null then
    update workflow_runs
       set signals = signals + 1, due_at = case when lease_token is null then new.cancel_requested_at else due_at end
     where execution_id = new.id and due_at is not null;
  else
    return null;
  end if;
  perform pg_notify('workflow_run', new.id::text);
  return null;
end $$;

create or replace trigger signal_workflow_run after update of cancel_requested_at, deleted_at on executions
  for each row when (new.type = 'WORKFLOW') execute function signal_workflow_run();
