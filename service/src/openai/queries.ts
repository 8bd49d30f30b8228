import type { Queries } from "../db/database.ts";

/** The prompts that somebody may run, newest first: their own, and what they bought and moderators left them. */
export const listRunnable = (db: Queries, userId: string, limit: number) =>
  db
    .with("mine", (query) =>
      query
        .selectFrom("products")
        .select("id")
        .where("author_id", "=", userId)
        .where("status", "<>", "deleted")
        .union(
          query
            .selectFrom("entitlements")
            .select("product_id as id")
            .where("buyer_id", "=", userId)
            .where("status", "=", "active"),
        ),
    )
    .selectFrom("mine")
    .innerJoin("products", "products.id", "mine.id")
    .innerJoin("users", "users.id", "author_id")
    .select(["products.id", "title", "users.name as authorName", "products.created_at as createdAt"])
    .where("products.type", "=", "PROMPT")
    .where((row) =>
      row.or([
        row("author_id", "=", userId),
        row("moderation_code", "is", null),
        row("moderation_code", "not in", ["malicious", "illegal"]),
      ]),
    )
    .orderBy("products.id", "desc")
    .limit(limit)
    .execute();
