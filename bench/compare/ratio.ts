/** How one figure changed from the first side to the second, over the rounds. */
export interface Ratio {
  /** The median of the rounds' own ratios: second side / first side. */
  median: number;
  /** A distribution-free interval for the median, of order statistics. */
  low: number;
  high: number;
}

/** The coverage of `low` to `high` is at least this. */
export const CONFIDENCE = 0.9;
/** Fewer rounds have no interval of that coverage: that of the smallest and the largest is 1 − 2 / 2^rounds. */
export const MIN_ROUNDS = 5;

/** null: a round of either side has 0, so that the ratio says nothing. Both lists have one value a round, in order. */
export function compareRounds(first: number[], second: number[]): Ratio | null {
  if (first.length !== second.length || first.length < MIN_ROUNDS)
    throw new Error(`${first.length} and ${second.length} rounds: at least ${MIN_ROUNDS} of both are needed`);
  if ([...first, ...second].some((value) => !(value > 0))) return null;
  const ratios = first.map((value, round) => second[round]! / value).toSorted((a, b) => a - b);
  const rank = rankOfInterval(ratios.length);
  return { median: middleOf(ratios), low: ratios[rank]!, high: ratios[ratios.length - 1 - rank]! };
}

/** The geometric mean of the middle two, so that exchanged sides give the reciprocal. */
function middleOf(sorted: number[]): number {
  const half = (sorted.length - 1) / 2;
  return Math.sqrt(sorted[Math.floor(half)]! * sorted[Math.ceil(half)]!);
}

/**
 * The largest index whose value, with the one as far from the other end, encloses the true median with at least
 * CONFIDENCE: the number of values below the median is binomial with p = ½, whatever the distribution.
 */
export function rankOfInterval(count: number): number {
  let outside = 0;
  let probability = 0.5 ** count;
  for (let rank = 0; ; rank++) {
    outside += 2 * probability;
    if (1 - outside < CONFIDENCE) return rank - 1;
    probability *= (count - rank) / (rank + 1);
  }
}

/** Whether the interval excludes "no change", and in which direction. */
export function judge({ low, high }: Ratio, isMoreBetter: boolean): "better" | "worse" | "" {
  if (low <= 1 && high >= 1) return "";
  return low > 1 === isMoreBetter ? "better" : "worse";
}
