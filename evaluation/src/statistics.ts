/** Repeated runs of one test case against one model. */
export interface CaseRuns {
  /** Runs whose verdict is "passed". */
  passed: number;
  /** Runs with a verdict. Cases without one are left out. */
  runs: number;
}

/** A rate from 0 to 1 with the bounds of its 95 % interval. */
export interface Rate {
  rate: number;
  low: number;
  high: number;
  /** The number of independent trials that the interval is worth: the effective sample size. */
  n: number;
}

/** The two-sided 95 % quantile of the normal distribution. */
const Z = 1.959963984540054;

/**
 * The 95 % interval of Wilson (1927, doi:10.1080/01621459.1927.10502953) for independent trials.
 * @param passed - from 0 to n; need not be whole, since `n` may be an effective sample size
 * @param n - 0 or more; without trials the interval is from 0 to 1
 */
export function wilsonInterval(passed: number, n: number): { low: number; high: number } {
  if (n <= 0) return { low: 0, high: 1 };
  const rate = passed / n;
  const center = (rate + Z ** 2 / (2 * n)) / (1 + Z ** 2 / n);
  const half = (Z / (1 + Z ** 2 / n)) * Math.sqrt((rate * (1 - rate)) / n + Z ** 2 / (4 * n ** 2));
  return {
    low: rate === 0 ? 0 : Math.max(0, center - half),
    high: rate === 1 ? 1 : Math.min(1, center + half),
  };
}

/**
 * The share of runs that pass, with its 95 % interval for other cases of the same kind. Repeats of one case are alike, so
 * runs are no independent trials: 20 cases with 5 repeats are worth between 20 and 100 trials. The interval is Wilson's for
 * the effective sample size, which follows from the variance between the cases (Kish 1965; Korn and Graubard 1998).
 * Cases count equally, whatever their number of runs. Null without runs. See docs/decisions/0068-score-statistics.md.
 */
export function passRate(cases: readonly CaseRuns[]): Rate | null {
  const tested = cases.filter(({ runs }) => runs > 0);
  return rateOf(
    tested.map(({ passed, runs }) => passed / runs),
    tested.reduce((sum, { runs }) => sum + runs, 0),
  );
}

/**
 * pass^k: the share of cases whose k repeats all pass, with its 95 % interval as in `passRate`. With more than k repeats each case
 * counts by the unbiased estimate C(passed, k) / C(runs, k) (Yao et al. 2024, tau-bench, arXiv:2406.12045).
 * Cases with fewer than k runs are left out; null if none is left.
 * @param k - a whole number of at least 1
 */
export function passPowerK(cases: readonly CaseRuns[], k: number): Rate | null {
  const tested = cases.filter(({ runs }) => runs >= k);
  return rateOf(
    tested.map((one) => shareOfFullPasses(one, k)),
    tested.reduce((sum, { runs }) => sum + runs, 0),
  );
}

/** C(passed, k) / C(runs, k). */
function shareOfFullPasses({ passed, runs }: CaseRuns, k: number): number {
  let share = 1;
  for (let index = 0; index < k; index++) share *= Math.max(0, passed - index) / (runs - index);
  return share;
}

function rateOf(shares: readonly number[], runs: number): Rate | null {
  if (shares.length === 0) return null;
  const rate = shares.reduce((sum, share) => sum + share, 0) / shares.length;
  const n = effectiveSampleSize(shares, rate, runs);
  return { rate, ...wilsonInterval(rate * n, n), n };
}

/** At least the number of cases, as if repeats added nothing; at most the number of runs, as if all were independent. */
function effectiveSampleSize(shares: readonly number[], rate: number, runs: number): number {
  const cases = shares.length;
  const squares = shares.reduce((sum, share) => sum + (share - rate) ** 2, 0);
  const varianceOfRate = squares / (cases - 1) / cases;
  // Equal shares (or one case) say nothing about the variance between cases.
  if (!(varianceOfRate > 0)) return cases;
  return Math.min(runs, Math.max(cases, (rate * (1 - rate)) / varianceOfRate));
}

type Interval = Pick<Rate, "rate" | "low" | "high">;

/**
 * The 95 % interval of the difference `one - other`, by method 10 of Newcombe (1998, Statistics in Medicine 17:873), which
 * combines the two Wilson intervals. If both rates are of the same cases, it is too wide, because it ignores that they agree.
 */
export const differenceInterval = (one: Interval, other: Interval): { low: number; high: number } => ({
  low: one.rate - other.rate - Math.hypot(one.rate - one.low, other.high - other.rate),
  high: one.rate - other.rate + Math.hypot(one.high - one.rate, other.rate - other.low),
});

/** Whether a rate fell by more than chance explains: the interval of the difference is above 0. */
export const isWorseBeyondInterval = (before: Rate, after: Rate): boolean =>
  differenceInterval(before, after).low > 0;

/** The middle value, or the mean of the two middle ones; null without values. */
export function median(values: readonly number[]): number | null {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length / 2;
  if (sorted.length === 0) return null;
  return (sorted[Math.ceil(middle - 1)]! + sorted[Math.floor(middle)]!) / 2;
}
