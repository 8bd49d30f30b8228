-- As claim-runs, without runs of `excludedUsers`. It steps from account to account and reads a few runs of each, so that it passes
-- 100,000 runs of one account in one step.
with recursive account (id) as (
  (select user_id from workflow_runs where due_at is not null order by user_id limit 1)
  union all
  select (select user_id from workflow_runs where due_at is not null and user_id > account.id order by user_id limit 1)
    from account where account.id is not null),
next as materialized (
  select run.execution_id
    from account
   cross join lateral (
     select execution_id from workflow_runs
      where user_id = account.id and due_at <= :now and (lease_token is null or :includesExpired::boolean)
        and execution_id <> all (:held::uuid[])
      order by due_at limit :limit) run
   where account.id <> all (:excludedUsers::uuid[])),
due as (
  select execution_id from workflow_runs
   where execution_id in (select execution_id from next) and due_at <= :now
   order by due_at limit :limit for update skip locked)
update workflow_runs r set lease_token = :token, lease_worker = :worker, due_at = :until, leases = r.leases + 1
  from due where r.execution_id = due.execution_id
returning r.execution_id as id, r.user_id, r.lease_token as token, r.leases
