import { findVisibleProduct, isAuthorOrAdmin, isWithheld } from "../../catalog/products/detail.ts";
import type { FindScoreCard } from "../../catalog/products/score-card.ts";
import { findTestSetSummaries } from "../../catalog/test-sets/test-sets.ts";
import type { Caller, Context } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import { toJudge, toTestedCases } from "./evaluations.ts";
import { countEvaluations, findCardEvaluation } from "./queries.ts";
import { countRealRuns } from "./real-runs.ts";

/** The seller cannot choose: the newest completed evaluation of the released version counts. */
export const findScoreCard: FindScoreCard = async (ctx, product) => {
  if (!product.released) return null;
  const released = { productId: product.id, version: product.released.join(".") };
  const row = await findCardEvaluation(ctx.db, released);
  if (!row) return null;
  const testSets = await findTestSetSummaries(ctx.db, [row.testSetId]);
  return {
    evaluationId: toId("eval", row.id),
    version: row.version,
    ...toTestedCases(required(testSets.get(row.testSetId), "the test set of a score card")),
    judge: toJudge(row.judge),
    repeats: row.repeats,
    models: row.scores,
    regressions: row.regressions,
    evaluations: await countEvaluations(ctx.db, released),
    runs: await countRealRuns(ctx.db, { ...released, authorId: product.authorId }),
    prices: row.priceList,
    evaluatedAt: row.completedAt.toISOString(),
  };
};

export async function readScoreCard(ctx: Context, caller: Caller, productId: string) {
  const product = await findVisibleProduct(ctx, caller, productId);
  const isHidden = isWithheld(product) && !isAuthorOrAdmin(product, caller);
  return { scoreCard: isHidden ? null : await findScoreCard(ctx, product) };
}
