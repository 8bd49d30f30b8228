import type pg from "pg";

/** For /metrics and the doctor. */
export interface JobStats {
  name: string;
  /** null: a queued job. */
  periodSeconds: number | null;
  /** When a worker first scheduled it; null: not yet. */
  knownSince: Date | null;
  runs: number;
  failures: number;
  lastSuccessAt: Date | null;
  lastFailureAt: Date | null;
}

/** A job is late when its last success is older than this many periods. */
const LATE_AFTER_PERIODS = 3;

export const hasFailed = ({ lastSuccessAt, lastFailureAt }: JobStats): boolean =>
  lastFailureAt !== null && (lastSuccessAt === null || lastFailureAt > lastSuccessAt);

export function isLate({ periodSeconds, lastSuccessAt, knownSince }: JobStats, now: Date): boolean {
  const since = lastSuccessAt ?? knownSince;
  if (periodSeconds === null || since === null) return false;
  return now.getTime() - since.getTime() > LATE_AFTER_PERIODS * periodSeconds * 1000;
}

const UNIT_SECONDS = { minute: 60, hour: 3_600, day: 86_400 };

/** The period of a cron expression with five fields: every n minutes, every hour or every day. */
export function cronPeriodSeconds(cron: string): number {
  const [, minutes, minute, hour] = /^(?:\*(?:\/(\d+))?|(\d+)) (?:\*|(\d+)) \* \* \*$/.exec(cron) ?? [];
  if (minutes) return Number(minutes) * UNIT_SECONDS.minute;
  if (hour) return UNIT_SECONDS.day;
  if (minute) return UNIT_SECONDS.hour;
  if (cron === "* * * * *") return UNIT_SECONDS.minute;
  throw new TypeError(`the period of ${cron} is not known`);
}

/** Stores which scheduled jobs exist, so that one that never ran is reported. Deletes removed jobs. */
export async function registerScheduledJobs(
  pool: pg.Pool,
  jobs: { name: string; periodSeconds: number }[],
  now: Date,
): Promise<void> {
  const names = jobs.map(({ name }) => name);
  await pool.query(
    `insert into job_runs (job, period_seconds, known_since)
       select job, period_seconds, $3 from unnest($1::text[], $2::int[]) as known (job, period_seconds)
     on conflict (job) do update set period_seconds = excluded.period_seconds`,
    [names, jobs.map(({ periodSeconds }) => periodSeconds), now],
  );
  await pool.query("delete from job_runs where period_seconds is not null and job <> all ($1)", [names]);
}

export interface JobRuns {
  succeeded: number;
  failed: number;
}

export async function recordJobRuns(
  pool: pg.Pool,
  name: string,
  { succeeded, failed }: JobRuns,
  now: Date,
): Promise<void> {
  await pool.query(
    `insert into job_runs as r (job, known_since, runs, failures, last_success_at, last_failure_at)
       values ($1, $2, $3::int + $4::int, $4, case when $3 > 0 then $2::timestamptz end,
               case when $4 > 0 then $2::timestamptz end)
     on conflict (job) do update set runs = r.runs + excluded.runs, failures = r.failures + excluded.failures,
       last_success_at = coalesce(excluded.last_success_at, r.last_success_at),
       last_failure_at = coalesce(excluded.last_failure_at, r.last_failure_at)`,
    [name, now, succeeded, failed],
  );
}

const MINUTE_MS = 60_000;

/**
 * Jobs that a starting worker runs at once: they have a period of over a minute, and no success within it. Otherwise a
 * worker that is restarted before each full hour would never run hourly jobs.
 */
export async function listMissedJobs(pool: pg.Pool, now: Date): Promise<Set<string>> {
  const { rows } = await pool.query<{ job: string }>(
    `select job from job_runs
      where period_seconds * 1000 > $2
        and coalesce(last_success_at, known_since) <= $1::timestamptz - period_seconds * interval '1 second'`,
    [now, MINUTE_MS],
  );
  return new Set(rows.map(({ job }) => job));
}
