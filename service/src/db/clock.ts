import type pg from "pg";

/** By how many milliseconds a process's clock is ahead of the database's; the answer's way there and back is taken as even. */
export async function measureSkew(pool: pg.Pool, now: () => Date): Promise<number> {
  const asked = now().getTime();
  const { rows } = await pool.query<{ ms: number }>(
    "select extract(epoch from clock_timestamp())::float8 * 1000 as ms",
  );
  return (asked + now().getTime()) / 2 - rows[0]!.ms;
}
