import type { ScoreCard } from "@stoa/contract";
import { sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";

/** Ended runs of one version by others than its author. */
export async function countRealRuns(
  db: Queries,
  { productId, version, authorId }: { productId: string; version: string; authorId: string },
): Promise<ScoreCard["runs"]> {
  const { rows } = await sql<ScoreCard["runs"]>`
    select (count(*) filter (where status = 'failed'))::int as failed, count(*)::int as n
      from executions
     where product_id = ${productId} and user_id <> ${authorId} and product_version = ${version}
       and status in ('completed', 'failed')`.execute(db);
  return firstOf(rows);
}
