import type { Regression, ScoreCard } from "@stoa/contract";
import { isWorseBeyondInterval } from "@stoa/evaluation/statistics";
import { toId } from "../../core/ids.ts";
import { required } from "../../core/required.ts";

type Score = ScoreCard["models"][number];
type Counted = Pick<Score, "passed" | "n" | "rate">;

/** A completed evaluation of a released version by the same test set. */
export interface ComparableEvaluation {
  id: string;
  version: string;
  definitionSha256: string;
  /** Whether its version is older than the one that is compared with it. */
  isOlder: boolean;
  completedAt: Date;
  scores: ScoreCard["models"];
  regressions: Regression[];
}

export interface FoundRegression extends Regression {
  /** The evaluation before did not have it. */
  isNew: boolean;
}

interface Evaluated extends Pick<ComparableEvaluation, "definitionSha256" | "completedAt" | "scores"> {
  /** Whether the changelog of the version says that it passes less. */
  isAcknowledged: boolean;
}

/**
 * The models that pass less than before, beyond the intervals. `earlier` is sorted by age, the oldest first. The same definition is
 * compared with its first evaluation, because a chain of small drops stays below the interval at each step.
 */
export const findRegressions = (
  evaluated: Evaluated,
  earlier: readonly ComparableEvaluation[],
): FoundRegression[] =>
  evaluated.scores.flatMap((score) => {
    const measured = earlier.filter(({ scores }) => findScore(scores, score)?.rate);
    const ofSameDefinition = measured.filter((one) => one.definitionSha256 === evaluated.definitionSha256);
    const worse = findWorse(score, ofSameDefinition[0]);
    const version = worse ? null : findWorseThanVersion(score, evaluated, measured);
    const before = worse ?? version;
    if (!before) return [];
    const known = ofSameDefinition.at(-1)?.regressions.find((one) => isSameModel(one, score));
    return {
      cause: worse ? ("model" as const) : ("version" as const),
      since: known?.since ?? evaluated.completedAt.toISOString(),
      ...toComparison(score, before),
      isNew: known === undefined,
    };
  });

/**
 * Flags the evaluations of a version that goes on sale, which were not compared when they completed. `evaluations` is sorted by age and ends
 * with that of the score card. `hasNews`: the score card has a flag that evaluations on sale did not have.
 */
export function flagInOrder(
  evaluations: readonly ComparableEvaluation[],
  {
    version,
    definitionSha256,
    isAcknowledged,
  }: Pick<ComparableEvaluation, "version" | "definitionSha256"> & { isAcknowledged: boolean },
): { flagged: ComparableEvaluation[]; hasNews: boolean } {
  const earlier: ComparableEvaluation[] = [];
  const news: Named[] = [];
  for (const one of evaluations) {
    const isReleased = one.version === version && one.definitionSha256 === definitionSha256;
    const found = isReleased ? findRegressions({ ...one, isAcknowledged }, earlier) : [];
    news.push(...found.filter(({ isNew }) => isNew));
    const regressions = found.map(({ isNew: _, ...regression }) => regression);
    earlier.push(isReleased ? { ...one, regressions } : one);
  }
  const ofCard = earlier.at(-1)?.regressions ?? [];
  return {
    flagged: earlier.filter((one, at) => one !== evaluations[at] && one.regressions.length > 0),
    hasNews: ofCard.some((regression) => news.some((one) => isSameModel(one, regression))),
  };
}

/** The newest evaluation of an older version that is no regression itself: a small edit of a worse version must not hide it. */
function findWorseThanVersion(
  score: Score,
  { definitionSha256, isAcknowledged }: Evaluated,
  measured: readonly ComparableEvaluation[],
): ComparableEvaluation | null {
  if (isAcknowledged) return null;
  const reference = measured.findLast(
    (one) =>
      one.isOlder &&
      one.definitionSha256 !== definitionSha256 &&
      !one.regressions.some((regression) => isSameModel(regression, score)),
  );
  return findWorse(score, reference);
}

/** Returns the evaluation if the score is worse than its one. */
export function findWorse<T extends Pick<ComparableEvaluation, "scores">>(
  score: Score,
  before: T | undefined,
): T | null {
  const [old, now] = [before && findScore(before.scores, score)?.rate, score.rate];
  if (!before || !old || !now) return null;
  return isWorseBeyondInterval(toRate(old), toRate(now)) ? before : null;
}

const toRate = ({ value, low, high, effectiveN }: NonNullable<Score["rate"]>) => ({
  ...{ rate: value, low, high },
  n: effectiveN,
});

type Named = Pick<Score, "provider" | "model">;
const isSameModel = (a: Named, b: Named) => a.provider === b.provider && a.model === b.model;

/** How a model passes, and how it did in the evaluation before. */
export function toComparison(
  score: Score,
  before: Pick<ComparableEvaluation, "id" | "version" | "completedAt" | "scores">,
): Pick<Regression, "provider" | "model" | "before" | "after"> {
  return {
    ...{ provider: score.provider, model: score.model },
    before: {
      ...{ evaluationId: toId("eval", before.id), version: before.version },
      evaluatedAt: before.completedAt.toISOString(),
      ...toCounted(required(findScore(before.scores, score), "the score that is compared")),
    },
    after: toCounted(score),
  };
}

export const findScore = (scores: ScoreCard["models"], model: Named): Score | undefined =>
  scores.find((one) => isSameModel(one, model));

const toCounted = ({ passed, n, rate }: Counted): Counted => ({ passed, n, rate });
