/** The verdict of assertions together: each must pass or, with a threshold, the weighted mean of their scores must reach it. */
export function combine(
  assertions: readonly { weight?: number | undefined }[],
  verdicts: readonly { isPassed: boolean; score: number }[],
  threshold: number | undefined,
): { isPassed: boolean; score: number } {
  let [total, totalWeight] = [0, 0];
  for (const [index, { score }] of verdicts.entries()) {
    const weight = assertions[index]!.weight ?? 1;
    total += score * weight;
    totalWeight += weight;
  }
  const score = totalWeight > 0 ? total / totalWeight : 0;
  return {
    isPassed: threshold === undefined ? verdicts.every(({ isPassed }) => isPassed) : score >= threshold,
    score,
  };
}

export const withMetric = ({ metric }: { metric?: string | undefined }): { metric?: string } =>
  metric === undefined ? {} : { metric };
