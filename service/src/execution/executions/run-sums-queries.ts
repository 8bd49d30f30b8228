import { sql } from "kysely";
import { dayOf, daysAfter } from "../../core/dates.ts";
import { firstOf } from "../../core/required.ts";
import type { Tx } from "../../platform/db/database.ts";

/** An arbitrary key of an advisory lock: runs are folded by one process at a time, and reopened while none does. */
const FOLD_LOCK = 7_200_413;

/** A retry waits for the transaction of a fold. The first fold after an upgrade has the runs of years, so it takes several transactions. */
const DAYS_AT_ONCE = 31;

/** Responses count the last 30 days by day. The sums have some more days, as the clocks of two processes differ. */
const SUMMED_DAYS = 40;

/**
 * Adds the runs of some days before `target`, and older ones that have ended since, to the sums, in one statement: a reader counts each
 * run once. Returns the time before which runs are in the sums; null: another process has the lock.
 */
export async function foldRunsBefore(
  tx: Tx,
  { target, now }: { target: Date; now: Date },
): Promise<Date | null> {
  // The first fold of a large marketplace takes longer than other statements may.
  const { rows: locks } = await sql<{ locked: boolean }>`
    select pg_try_advisory_xact_lock(${FOLD_LOCK}) as locked, set_config('statement_timeout', '0', true)`.execute(
    tx,
  );
  if (!firstOf(locks).locked) return null;
  await forgetSumsOfLaterThan(tx, now);
  const { rows: ends } = await sql<{ until: Date }>`
    select least(${target}, ${DAYS_AT_ONCE} * interval '1 day' + case when isfinite(folded_until) then folded_until
                 else (select date_trunc('day', min(created_at), 'UTC') from executions) end) as until
      from run_folds`.execute(tx);
  const { until } = firstOf(ends);
  const oldest = daysAfter(target, -SUMMED_DAYS);
  // A statement of its own, which begins after the lock: it sees every run that was reopened before.
  await sql`
    with recursive ran as (
      (select product_id from executions
        where (select folded_until from run_folds) < ${until} order by product_id limit 1)
      union all
      select (select e.product_id from executions e where e.product_id > ran.product_id order by e.product_id limit 1)
        from ran where ran.product_id is not null),
    -- Each product's runs of these days from its index: in the table, they are among all others.
    fresh as materialized (
      select p.author_id, e.id, e.product_id, e.user_id, e.created_at, e.status, e.error_code, e.completed_at is not null as has_ended
        from ran join products p on p.id = ran.product_id
       cross join lateral (select * from executions e
                            where e.product_id = ran.product_id and e.user_id <> p.author_id and e.created_at < ${until}
                              and e.created_at >= (select folded_until from run_folds)) e),
    late as (
      delete from unfolded_runs u using executions e where e.id = u.execution_id and e.completed_at is not null
      returning u.author_id, e.product_id, e.created_at, e.status, e.error_code),
    ended as materialized (
      select author_id, product_id, created_at, status, error_code from fresh where has_ended
      union all select author_id, product_id, created_at, status, error_code from late),
    summed as (
      insert into run_sums as s (author_id, day, product_id, status, error_code, runs)
      select author_id, (created_at at time zone 'UTC')::date, product_id, status, coalesce(error_code, ''), count(*)
        from ended where created_at >= ${oldest} group by 1, 2, 3, 4, 5
      on conflict (author_id, day, product_id, status, error_code) do update set runs = s.runs + excluded.runs),
    new_buyers as (
      insert into run_buyers (product_id, user_id) select distinct product_id, user_id from fresh
      on conflict do nothing returning product_id),
    totaled as (
      insert into run_totals as t (author_id, product_id, completed, failed, canceled, buyers)
      select author_id, product_id, sum(completed), sum(failed), sum(canceled), sum(buyers)
        from (select author_id, product_id, (status = 'completed')::int as completed, (status = 'failed')::int as failed,
                     (status = 'canceled')::int as canceled, 0 as buyers from ended
              union all
              select p.author_id, n.product_id, 0, 0, 0, 1 from new_buyers n join products p on p.id = n.product_id) as one
       group by 1, 2
      on conflict (author_id, product_id) do update
        set completed = t.completed + excluded.completed, failed = t.failed + excluded.failed,
            canceled = t.canceled + excluded.canceled, buyers = t.buyers + excluded.buyers),
    unfolded as (
      insert into unfolded_runs (execution_id, author_id) select id, author_id from fresh where not has_ended)
    update run_folds set folded_until = ${until} where folded_until < ${until}`.execute(tx);
  await sql`delete from run_sums where day < ${dayOf(oldest)}::date`.execute(tx);
  return until;
}

/**
 * Empties the sums that a clock ahead of its time made: they would lack the runs that began since. Until runs are folded again,
 * responses count them one by one.
 */
const forgetSumsOfLaterThan = (tx: Tx, now: Date) =>
  sql`
    with ahead as (
      update run_folds set folded_until = '-infinity' where folded_until > ${now} returning is_only),
    totals as (delete from run_totals where exists (select from ahead)),
    buyers as (delete from run_buyers where exists (select from ahead)),
    unfolded as (delete from unfolded_runs where exists (select from ahead))
    delete from run_sums where exists (select from ahead)`.execute(tx);

/** Sets an ended workflow back to `queued`, and takes it out of the sums that have it. False: it has another status. */
export async function reopenRun(tx: Tx, id: string): Promise<boolean> {
  await sql`select pg_advisory_xact_lock_shared(${FOLD_LOCK})`.execute(tx);
  // A statement of its own: the next one sees what a concurrent retry, for which this one waited, took out of the sums.
  await sql`select from executions where id = ${id} for update`.execute(tx);
  const { rows } = await sql`
    with ended as (
      select id, product_id, user_id, created_at, status, coalesce(error_code, '') as error_code from executions
       where id = ${id} and type = 'WORKFLOW' and status in ('failed', 'canceled')),
    reopened as (
      update executions
         set status = 'queued', error_code = null, error_message = null, cancel_requested_at = null, completed_at = null,
             duration_ms = null
       where id in (select id from ended)),
    folded as (
      select r.*, p.author_id from ended r join products p on p.id = r.product_id
       where r.user_id <> p.author_id and r.created_at < (select folded_until from run_folds)
         and not exists (select from unfolded_runs u where u.execution_id = r.id)),
    summed as (
      update run_sums s set runs = s.runs - 1 from folded f
       where (s.author_id, s.day, s.product_id, s.status, s.error_code)
           = (f.author_id, (f.created_at at time zone 'UTC')::date, f.product_id, f.status, f.error_code)),
    totaled as (
      update run_totals t
         set failed = t.failed - (f.status = 'failed')::int, canceled = t.canceled - (f.status = 'canceled')::int
        from folded f where (t.author_id, t.product_id) = (f.author_id, f.product_id)),
    unfolded as (insert into unfolded_runs (execution_id, author_id) select id, author_id from folded)
    select from ended`.execute(tx);
  return rows.length > 0;
}
