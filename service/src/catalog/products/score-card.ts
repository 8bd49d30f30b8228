import type { Regression, ScoreCard } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { ruleViolation } from "../../core/errors.ts";
import type { Queries } from "../../platform/db/database.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** Registered in base.ts: the catalog does not import evaluations. */
    findScoreCard: FindScoreCard;
    findReleaseRegressions: FindReleaseRegressions;
  }
}

/** null: no evaluation of the released version completed. */
export type FindScoreCard = (
  ctx: Context,
  product: { id: string; authorId: string; released: number[] | null },
) => Promise<ScoreCard | null>;

/** The models on which a content passes less than the content on sale, as far as evaluations of both completed. */
export type FindReleaseRegressions = (
  db: Queries,
  release: { productId: string; onSale: string; content: string },
) => Promise<ReleaseRegression[]>;

export type ReleaseRegression = Pick<Regression, "provider" | "model" | "before" | "after">;

interface Release {
  id: string;
  /** The version that buyers get until now; null: none. */
  released: number[] | null;
  content: string;
  acknowledgesRegression: boolean;
}

/** Buyers must read in the changelog that a new version is measured worse. `fix`: what the seller can do. */
export async function mustAcknowledgeRegression(
  ctx: Context,
  db: Queries,
  { id, released, content, acknowledgesRegression }: Release,
  fix: string,
): Promise<void> {
  if (!released || acknowledgesRegression) return;
  const found = await ctx.findReleaseRegressions(db, {
    ...{ productId: id, content },
    onSale: released.join("."),
  });
  if (found.length === 0) return;
  const onSale = released.join(".");
  throw ruleViolation(
    "acknowledgesRegression",
    `must be true, because evaluations measured this content worse than version ${onSale}: ${found.map(describeRegression).join("; ")}. ${fix}`,
  );
}

/** Such as `gpt-5-mini passes 12 of 60 runs instead of 57 of 60`. */
export const describeRegression = ({ model, before, after }: Omit<ReleaseRegression, "provider">): string =>
  `${model ?? "the workflow"} passes ${after.passed} of ${after.n} runs instead of ${before.passed} of ${before.n}`;
