-- Leases the due runs that have waited longest. `held`: runs that the caller drives already.
with due as (
  select execution_id from workflow_runs
   where due_at <= :now and (lease_token is null or :includesExpired::boolean) and execution_id <> all (:held::uuid[])
   order by due_at limit :limit for update skip locked)
update workflow_runs r set lease_token = :token, lease_worker = :worker, due_at = :until, leases = r.leases + 1
  from due where r.execution_id = due.execution_id
returning r.execution_id as id, r.user_id, r.lease_token as token, r.leases
