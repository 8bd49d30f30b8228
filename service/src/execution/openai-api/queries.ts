import type { Queries } from "../../platform/db/database.ts";

/** The prompts that somebody may run, newest first. */
export const listRunnablePrompts = (db: Queries, userId: string, limit: number) =>
  db
    .selectFrom("runnable_products as mine")
    .innerJoin("products", "products.id", "mine.product_id")
    .innerJoin("users", "users.id", "author_id")
    .select(["products.id", "title", "users.name as authorName", "products.created_at as createdAt"])
    .where("mine.user_id", "=", userId)
    .where("products.type", "=", "PROMPT")
    .orderBy("products.id", "desc")
    .limit(limit)
    .execute();
