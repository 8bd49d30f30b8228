import type {
  CompareRelease,
  FindReleaseRegressions,
  FlagReleases,
} from "../../catalog/products/score-card.ts";
import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import { reportRegressions } from "./notifications.ts";
import {
  findCardEvaluation,
  findNewestOfDefinition,
  findReleaseOf,
  hashDefinition,
  listComparable,
  listEvaluated,
  storeRegressions,
} from "./queries.ts";
import { findScore, findWorse, flagInOrder, toComparison } from "./regressions.ts";

export const findReleaseRegressions: FindReleaseRegressions = async (db, release) =>
  (await compareRelease(db, release)).flatMap(({ isWorse, ...regression }) => (isWorse ? [regression] : []));

/** By the newest evaluations of both definitions with the test set of the newest one. */
export const compareRelease: CompareRelease = async (db, { productId, onSale, ...definition }) => {
  const definitionSha256 = await hashDefinition(db, definition);
  const newest = await findNewestOfDefinition(db, productId, definitionSha256);
  if (!newest) return [];
  const comparable = await listComparable(db, { ...newest, productId, version: onSale });
  const before = comparable.findLast(({ version }) => version === onSale);
  if (!before || before.definitionSha256 === definitionSha256) return [];
  return newest.scores.flatMap((score) =>
    findScore(before.scores, score)
      ? { ...toComparison(score, before), isWorse: findWorse(score, before) !== null }
      : [],
  );
};

export const flagReleases: FlagReleases = async (ctx, tx, releases) => {
  const evaluated = await listEvaluated(
    tx,
    releases.map(({ productId }) => productId),
  );
  for (const release of releases) if (evaluated.has(release.productId)) await flagRelease(ctx, tx, release);
};

/** Also the evaluations before that of the score card: one without its flag would hide the drop of the next version. */
async function flagRelease(
  ctx: Context,
  tx: Tx,
  release: Parameters<FlagReleases>[2][number],
): Promise<void> {
  const card = await findCardEvaluation(tx, release);
  const found = card && (await findReleaseOf(tx, release));
  if (!found) return;
  const evaluations = [...(await listComparable(tx, card)), { ...card, isOlder: false }];
  const { flagged, hasNews } = flagInOrder(evaluations, { ...card, ...found });
  for (const { id, regressions } of flagged) await storeRegressions(tx, id, regressions);
  const { regressions = [] } = flagged.find(({ id }) => id === card.id) ?? {};
  if (hasNews) await reportRegressions(ctx, tx, card, regressions);
}
