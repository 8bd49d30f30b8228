-- The public link to a run. The token gives access to the run's input and output.
create table execution_shares (
  execution_id uuid primary key references executions on delete cascade,
  user_id uuid not null references users on delete cascade,
  token_digest bytea not null unique,
  -- So that the owner can read the link again.
  sealed_token text not null,
  created_at timestamptz not null
);
create index execution_shares_user on execution_shares (user_id);
create trigger open_account before insert on execution_shares
  for each row execute function must_not_be_closed('user_id');

create function delete_execution_share() returns trigger language plpgsql as $$
begin
  delete from execution_shares where execution_id = new.id;
  return null;
end $$;

-- As erase_callback_results: the run is deleted, its texts are old, or its owner's account is closed.
create trigger executions_unshared after update of sealed_texts, deleted_at on executions
  for each row when (new.sealed_texts is null and (old.sealed_texts is not null or new.deleted_at is distinct from old.deleted_at))
  execute function delete_execution_share();
