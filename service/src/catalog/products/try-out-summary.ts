import { createHash } from "node:crypto";
import type { ProductDetail } from "@stoa/contract";
import type { Context } from "../../core/context.ts";

/** The part of a try-out that everybody may see. */
export interface StoredTryOut {
  model: string | null;
  isSandbox: boolean;
  perVisitor: number;
  leftToday: number;
}

export const tryOutOf = (
  { integrations }: Context,
  { tryOut }: { tryOut: StoredTryOut | null },
): ProductDetail["tryOut"] => tryOut && { ...tryOut, captcha: integrations.captcha.widget };

/** It changes with each try, without a change of the product. */
export const tryOutEtag = ({ tryOut }: Pick<ProductDetail, "tryOut">): string =>
  tryOut === null
    ? ""
    : `~try-${createHash("sha256").update(JSON.stringify(tryOut)).digest("base64url").slice(0, 12)}`;
