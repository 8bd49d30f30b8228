import { notifyAccount } from "../../accounts/notifications/notify-account.ts";
import { listEntitledBuyers } from "../../catalog/entitlements/entitlements.ts";
import { findProductTitle, isWithheldFromBuyers } from "../../catalog/products/product-lookup.ts";
import { describeRegression } from "../../catalog/products/score-card.ts";
import type { Context } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { renderEmail } from "../../platform/email/render-email.ts";
import type { JobDefinition } from "../../platform/jobs/job-queue.ts";
import { findCardEvaluation, findEvaluation, findReleaseOf } from "./queries.ts";

export const notifyOfRegressionJob: JobDefinition = {
  name: "notify-buyers-of-regression",
  retries: 20,
  retryDelaySeconds: 30,
  maxRetryDelaySeconds: 3_600,
  attemptTimeoutSeconds: 900,
};

export interface NotifyOfRegressionData {
  evaluationId: string;
}

/** Small: each buyer has a notification and perhaps an email in the transaction of the batch. */
const BATCH_SIZE = 100;

/**
 * Notifies the buyers of the version's major line, in batches. A retry begins anew, and notifies again no buyer that was notified. Ends early
 * when another evaluation or version took the place of this one.
 */
export async function notifyOfRegression(
  ctx: Context,
  { evaluationId }: NotifyOfRegressionData,
  signal: AbortSignal,
  batchSize = BATCH_SIZE,
): Promise<void> {
  let after: string | null = null;
  for (;;) {
    signal.throwIfAborted();
    const found = await findFlagged(ctx, evaluationId);
    if (!found) return;
    const { productId, major, product, result } = found;
    const buyers: string[] = await listEntitledBuyers(ctx.db, { productId, major }, after, batchSize);
    const email = renderEmail({
      subject: `Passes fewer tests: ${product}`,
      paragraphs: [
        `A new evaluation of “${product}”, which you own, passes fewer of its seller's tests than before: ${result}.`,
      ],
      action: { label: "See the score card", url: `${ctx.links.origin()}/p/${toId("prod", productId)}` },
    });
    await ctx.db.transaction().execute(async (tx) => {
      for (const userId of buyers)
        await notifyAccount(
          ctx,
          tx,
          {
            ...{ userId, kind: "product.regressed", subjectId: toId("prod", productId) },
            ...{ data: { product, result }, occurrence: toId("eval", evaluationId) },
          },
          email,
        );
    });
    if (buyers.length < batchSize) return;
    after = buyers.at(-1) ?? null;
  }
}

/** null: the score card does not show this evaluation, or buyers do not see the product. */
async function findFlagged(ctx: Context, evaluationId: string) {
  const evaluation = await findEvaluation(ctx.db, evaluationId);
  const release = evaluation && (await findReleaseOf(ctx.db, evaluation));
  if (!release) return null;
  const { productId } = evaluation;
  if ((await findCardEvaluation(ctx.db, evaluation))?.id !== evaluationId) return null;
  if (await isWithheldFromBuyers(ctx.db, productId)) return null;
  const product = (await findProductTitle(ctx.db, productId)) ?? "A product";
  return {
    ...release,
    productId,
    product,
    result: evaluation.regressions.map(describeRegression).join("; "),
  };
}
