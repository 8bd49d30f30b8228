import type { Regression, ScoreCard } from "@stoa/contract";
import { notifyAccount } from "../../accounts/notifications/notify-account.ts";
import { hasEntitlements } from "../../catalog/entitlements/entitlements.ts";
import { findProductTitle } from "../../catalog/products/product-lookup.ts";
import { describeModel, describeRegression } from "../../catalog/products/score-card.ts";
import type { Context } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { publishEvent } from "../../events/outbox/outbox.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { type Email, renderEmail } from "../../platform/email/render-email.ts";
import { type NotifyOfRegressionData, notifyOfRegressionJob } from "./buyer-notifications.ts";
import type { EvaluationRow } from "./queries.ts";

export type CompletedEvaluation = EvaluationRow & { completedAt: Date; scores: ScoreCard["models"] };

type Ended = Pick<EvaluationRow, "id" | "productId" | "userId" | "version">;

const titleOf = async (db: Queries, { productId }: Pick<Ended, "productId">): Promise<string> =>
  (await findProductTitle(db, productId)) ?? "A product";

const aboutProduct = ({ id, productId, userId }: Ended) => ({
  userId,
  subjectId: toId("prod", productId),
  occurrence: toId("eval", id),
});

const toEmail = (ctx: Context, { productId }: Ended, subject: string, paragraphs: string[]): Email =>
  renderEmail({
    subject,
    paragraphs,
    action: {
      label: "Open the product",
      url: `${ctx.links.origin()}/studio/products/${toId("prod", productId)}`,
    },
  });

export async function notifyOfCompletion(
  ctx: Context,
  tx: Tx,
  evaluation: CompletedEvaluation,
): Promise<void> {
  const product = await titleOf(tx, evaluation);
  const { version } = evaluation;
  const result = evaluation.scores
    .map(({ passed, n, ...model }) => `${describeModel(model)} passes ${passed} of ${n} runs`)
    .join("; ");
  await notifyAccount(
    ctx,
    tx,
    { ...aboutProduct(evaluation), kind: "evaluation.completed", data: { product, version, result } },
    toEmail(ctx, evaluation, `Evaluated: ${product}`, [
      `The evaluation of version ${version} of “${product}” completed: ${result}.`,
    ]),
  );
}

export async function notifyOfFailure(
  ctx: Context,
  tx: Tx,
  evaluation: Ended,
  errorCode: string,
): Promise<void> {
  const product = await titleOf(tx, evaluation);
  const { version } = evaluation;
  await notifyAccount(
    ctx,
    tx,
    { ...aboutProduct(evaluation), kind: "evaluation.failed", data: { product, version, code: errorCode } },
    toEmail(ctx, evaluation, `Evaluation failed: ${product}`, [
      `The evaluation of version ${version} of “${product}” failed with the error ${errorCode}. Its results so far stay.`,
    ]),
  );
}

/** `change`: tells a pause apart from the one after the next change of the settings. */
export async function notifyOfPause(
  ctx: Context,
  tx: Tx,
  evaluation: Ended,
  { code, reason, change }: { code: string; reason: string; change: Date },
): Promise<void> {
  const product = await titleOf(tx, evaluation);
  const { occurrence, ...about } = aboutProduct(evaluation);
  await notifyAccount(
    ctx,
    tx,
    {
      ...{ ...about, occurrence: `${occurrence} ${change.getTime()}`, kind: "evaluation.paused" },
      data: { product, code, reason },
    },
    toEmail(ctx, evaluation, `Evaluations paused: ${product}`, [
      `“${product}” cannot be evaluated again: ${reason}.`,
    ]),
  );
}

/** The flag is new for at least one model: the event, the seller's notification, and the job that notifies the buyers. */
export async function reportRegressions(
  ctx: Context,
  tx: Tx,
  evaluation: CompletedEvaluation,
  regressions: readonly Regression[],
): Promise<void> {
  await publishEvent(ctx, tx, [evaluation.userId], "evaluation.regressed", {
    evaluation: {
      id: toId("eval", evaluation.id),
      productId: toId("prod", evaluation.productId),
      version: evaluation.version,
      regressions: regressions.map(toEventRegression),
      completedAt: evaluation.completedAt.toISOString(),
    },
  });
  const product = await titleOf(tx, evaluation);
  const result = regressions.map(describeRegression).join("; ");
  await notifyAccount(
    ctx,
    tx,
    { ...aboutProduct(evaluation), kind: "evaluation.regressed", data: { product, result } },
    toEmail(ctx, evaluation, `Passes fewer tests: ${product}`, [
      `The newest evaluation of “${product}” passes fewer tests than before: ${result}. Buyers see this on its score card.`,
      "Evaluate it again after a fix. The notice goes when an evaluation is no longer worse.",
    ]),
  );
  const data: NotifyOfRegressionData = { evaluationId: evaluation.id };
  if (await hasEntitlements(tx, evaluation.productId))
    await ctx.jobs.send(tx, notifyOfRegressionJob.name, data);
}

const toEventRegression = ({ provider, model, cause, before, after }: Regression) => ({
  ...{ provider, model, cause },
  before: {
    ...{ evaluationId: before.evaluationId, version: before.version },
    ...{ passed: before.passed, n: before.n },
  },
  after: { passed: after.passed, n: after.n },
});
