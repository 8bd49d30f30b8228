import type { ScoreCard } from "@stoa/contract";
import type { Context } from "../../core/context.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** Registered in base.ts: the catalog does not import evaluations. */
    findScoreCard: FindScoreCard;
  }
}

/** null: no evaluation of the released version completed. */
export type FindScoreCard = (
  ctx: Context,
  product: { id: string; authorId: string; released: number[] | null },
) => Promise<ScoreCard | null>;
