import { notifyAccount } from "../../accounts/notifications/notify-account.ts";
import { findProductTitle } from "../../catalog/products/product-lookup.ts";
import type { Context } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import type { Tx } from "../../platform/db/database.ts";

/** The end of a shorter run is seen by the person who started it. */
export const LONG_RUN_MS = 60_000;

type RunNews =
  | { kind: "execution.waiting"; steps: string[]; occurrence: string }
  | { kind: "execution.completed" }
  | { kind: "execution.failed"; code: string };

/** In the transaction that changed the run. */
export async function notifyOwner(
  ctx: Context,
  tx: Tx,
  { id, userId, productId }: { id: string; userId: string; productId: string },
  news: RunNews,
): Promise<void> {
  const about = { userId, subjectId: toId("exec", id) };
  const product = (await findProductTitle(tx, productId)) ?? "a workflow";
  switch (news.kind) {
    case "execution.waiting": {
      const { kind, steps, occurrence } = news;
      return notifyAccount(ctx, tx, {
        ...about,
        kind,
        occurrence,
        data: { product, steps: steps.join(", ") },
      });
    }
    case "execution.completed":
      return notifyAccount(ctx, tx, { ...about, kind: news.kind, data: { product } });
    case "execution.failed":
      return notifyAccount(ctx, tx, { ...about, kind: news.kind, data: { product, code: news.code } });
  }
}
