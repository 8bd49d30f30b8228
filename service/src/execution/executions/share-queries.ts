import { sql } from "kysely";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { type ExecutionRow, selectExecutions } from "./queries.ts";

export interface ShareRow {
  executionId: string;
  userId: string;
  sealedToken: string;
  createdAt: Date;
}

/** Locks the execution, so that it is not deleted meanwhile. `sealedTexts` null: none are stored. */
export const lockExecution = (tx: Tx, userId: string, id: string) =>
  selectExecutions(tx, userId).where("id", "=", id).select("sealedTexts").forNoKeyUpdate().executeTakeFirst();

/** Leaves an existing link as it is. */
export const insertShare = (tx: Tx, share: ShareRow & { tokenDigest: Buffer }) =>
  tx
    .insertInto("executionShares")
    .values(share)
    .onConflict((conflict) => conflict.column("executionId").doNothing())
    .execute();

/** undefined: it has none that works, since texts are erased then and buyers lost access to a withheld product. */
export async function findShareRow(db: Queries, executionId: string, textsSince: Date) {
  const { rows } = await sql<ShareRow>`
    select s.execution_id, s.user_id, s.sealed_token, s.created_at
      from execution_shares s
      join executions e on e.id = s.execution_id
      join products p on p.id = e.product_id
     where s.execution_id = ${executionId} and e.created_at >= ${textsSince} and ${isNotWithheld}`.execute(
    db,
  );
  return rows[0];
}

const isNotWithheld = sql`coalesce(p.moderation_code, '') not in ('malicious', 'illegal')`;

export const deleteShare = (db: Queries, executionId: string) =>
  db.deleteFrom("executionShares").where("executionId", "=", executionId).execute();

export type SharedRunRow = Pick<
  ExecutionRow,
  | "id"
  | "userId"
  | "type"
  | "productId"
  | "productVersion"
  | "provider"
  | "model"
  | "createdAt"
  | "promptTokens"
  | "completionTokens"
  | "costUsd"
  | "costKnown"
  | "usageEstimated"
> & { sealedTexts: string; title: string; isOnSale: boolean };

/** Without runs of banned users: a ban also ends what they published. */
export async function findSharedRun(
  db: Queries,
  tokenDigest: Buffer,
  textsSince: Date,
): Promise<SharedRunRow | undefined> {
  const { rows } = await sql<SharedRunRow>`
    select e.id, e.user_id, e.type, e.product_id, e.product_version, e.provider, e.model, e.created_at, e.prompt_tokens,
           e.completion_tokens, e.cost_usd, e.cost_known, e.usage_estimated, e.sealed_texts, p.title,
           p.status = 'published' and a.banned_at is null as is_on_sale
      from execution_shares s
      join executions e on e.id = s.execution_id
      join users u on u.id = s.user_id
      join products p on p.id = e.product_id
      join users a on a.id = p.author_id
     where s.token_digest = ${tokenDigest} and e.status = 'completed' and e.deleted_at is null and e.sealed_texts is not null
       and e.created_at >= ${textsSince} and u.banned_at is null and u.closed_at is null and ${isNotWithheld}`.execute(
    db,
  );
  return rows[0];
}
