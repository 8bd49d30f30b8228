import type { Regression, ScoreCard } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { ruleViolation } from "../../core/errors.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import type { VersionRow } from "./queries.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** Registered in base.ts: the catalog does not import evaluations. */
    findScoreCard: FindScoreCard;
    findReleaseRegressions: FindReleaseRegressions;
    compareRelease: CompareRelease;
    flagReleases: FlagReleases;
  }
}

/** null: no evaluation of the released version completed. */
export type FindScoreCard = (
  ctx: Context,
  product: { id: string; authorId: string; released: number[] | null },
) => Promise<ScoreCard | null>;

/** What a version runs. */
export type VersionDefinition = Pick<VersionRow, "content" | "contentFormat" | "variables">;

/** The models on which a version passes less than the one on sale, as far as evaluations of both completed. */
export type FindReleaseRegressions = (
  db: Queries,
  release: { productId: string; onSale: string } & VersionDefinition,
) => Promise<ReleaseRegression[]>;

/** All models that evaluations of both versions measured, by the test set of the newest one. */
export type CompareRelease = (
  db: Queries,
  release: Parameters<FindReleaseRegressions>[1],
) => Promise<(ReleaseRegression & { isWorse: boolean })[]>;

/** Flags the score cards of versions that go on sale, if evaluations measured them worse before. The products are locked. */
export type FlagReleases = (
  ctx: Context,
  tx: Tx,
  releases: { productId: string; version: string }[],
) => Promise<void>;

export type ReleaseRegression = Pick<Regression, "provider" | "model" | "before" | "after">;

interface Release extends VersionDefinition {
  id: string;
  /** The version that buyers get until now; null: none. */
  released: number[] | null;
  acknowledgesRegression: boolean;
}

/** Buyers must read in the changelog that a new version is measured worse. `fix`: what the seller can do. */
export async function mustAcknowledgeRegression(
  ctx: Context,
  db: Queries,
  { id, released, acknowledgesRegression, content, contentFormat, variables }: Release,
  fix: string,
): Promise<void> {
  if (!released || acknowledgesRegression) return;
  const found = await ctx.findReleaseRegressions(db, {
    ...{ productId: id, content, contentFormat, variables },
    onSale: released.join("."),
  });
  if (found.length === 0) return;
  const onSale = released.join(".");
  throw ruleViolation(
    "acknowledgesRegression",
    `must be true, because evaluations measured this version worse than version ${onSale}: ${found.map(describeRegression).join("; ")}. ${fix}`,
  );
}

/** Call it in the transaction of each change that may have released versions, after the change is written. */
export async function flagNewReleases(
  ctx: Context,
  tx: Tx,
  changes: { before: Pick<Release, "released">; after: Pick<Release, "id" | "released"> }[],
): Promise<void> {
  const releases = changes.flatMap(({ before, after: { id, released } }) => {
    const version = released?.join(".");
    return version === undefined || version === before.released?.join(".")
      ? []
      : [{ productId: id, version }];
  });
  if (releases.length > 0) await ctx.flagReleases(ctx, tx, releases);
}

/** Such as `openai gpt-5-mini passes 12 of 60 runs instead of 57 of 60`. */
export const describeRegression = ({ before, after, ...model }: ReleaseRegression): string =>
  `${describeModel(model)} passes ${after.passed} of ${after.n} runs instead of ${before.passed} of ${before.n}`;

/** With its provider, because two providers may offer a model of one name. */
export const describeModel = ({ provider, model }: Pick<Regression, "provider" | "model">): string =>
  model === null ? "the workflow" : `${provider} ${model}`;
