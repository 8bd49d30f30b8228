-- A request that came in before its account closed may still write when it has: what closing removes stays removed, and
-- nobody is charged for a plan that nobody has any more.

-- Not the account's row: whatever refers to it would wait, other people's orders and reviews too.
create function lock_account_for_closing(account uuid) returns void language sql as $$
  select pg_advisory_xact_lock(hashtext('closing'), hashtext(account::text));
$$;

-- The argument names the column that says whose row it is.
create function must_not_be_closed() returns trigger language plpgsql as $$
declare
  account uuid;
begin
  -- Not by way of jsonb, which refuses what a json payload may hold: a NUL that a client wrote.
  execute format('select ($1).%I', tg_argv[0]) into account using new;
  perform pg_advisory_xact_lock_shared(hashtext('closing'), hashtext(account::text));
  if exists (select from users where id = account and closed_at is not null) then
    raise exception 'the account % is closed', account using errcode = 'ST001';
  end if;
  return new;
end $$;

create trigger open_account before insert on api_keys
  for each row execute function must_not_be_closed('user_id');
create trigger open_account before insert on sessions
  for each row execute function must_not_be_closed('user_id');
create trigger open_account before insert on one_time_tokens
  for each row execute function must_not_be_closed('user_id');
create trigger open_account before insert on authenticators
  for each row execute function must_not_be_closed('user_id');
create trigger open_account before insert on identities
  for each row execute function must_not_be_closed('user_id');
create trigger open_account before insert on oauth_clients
  for each row execute function must_not_be_closed('owner_id');
create trigger open_account before insert on oauth_grants
  for each row execute function must_not_be_closed('user_id');
create trigger open_account before insert on oauth_tokens
  for each row execute function must_not_be_closed('user_id');
create trigger open_account before insert on provider_keys
  for each row execute function must_not_be_closed('user_id');
create trigger open_account before insert on products
  for each row execute function must_not_be_closed('author_id');
create trigger open_account before insert on reviews
  for each row execute function must_not_be_closed('author_id');
create trigger open_account before insert on review_reports
  for each row execute function must_not_be_closed('reporter_id');
create trigger open_account before insert on subscriptions
  for each row execute function must_not_be_closed('user_id');
create trigger open_account before insert on subscription_payments
  for each row execute function must_not_be_closed('user_id');
