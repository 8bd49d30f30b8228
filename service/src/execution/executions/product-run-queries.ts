import type { ProductRuns } from "@stoa/contract";
import { sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";

/** Counts the runs of all users but the author, including deleted executions. */
export async function countProductRuns(db: Queries, product: { id: string; authorId: string }, since: Date) {
  const { rows } = await sql<ProductRuns>`
    select count(*)::int as total,
           (count(*) filter (where status = 'completed'))::int as completed,
           (count(*) filter (where status = 'failed'))::int as failed,
           (count(*) filter (where status = 'canceled'))::int as canceled,
           (count(distinct user_id))::int as buyers,
           (count(*) filter (where created_at >= ${since}))::int as "last30Days"
      from executions where product_id = ${product.id} and user_id <> ${product.authorId}`.execute(db);
  return firstOf(rows);
}

/** A prompt that a step of a workflow ran. */
export interface ProductRun {
  userId: string;
  productId: string;
  productVersion: string;
  provider: string;
  model: string;
  status: "completed" | "failed" | "canceled";
  errorCode: string | null;
}

/** Inserts a deleted execution, which only counts for the product: the history shows the workflow run. */
export const insertProductRun = (
  db: Queries,
  { id, userId, status, ...run }: ProductRun & { id: string; now: Date },
) =>
  db
    .insertInto("executions")
    .values({
      id,
      userId,
      productId: run.productId,
      productVersion: run.productVersion,
      provider: run.provider,
      model: run.model,
      mode: "async",
      status,
      errorCode: run.errorCode,
      createdAt: run.now,
      completedAt: run.now,
      deletedAt: run.now,
    })
    .execute();
