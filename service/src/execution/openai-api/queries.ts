import type { Queries } from "../../platform/db/database.ts";

/** The prompts that a user may run, newest first. */
export const listRunnablePrompts = (db: Queries, userId: string, limit: number) =>
  db
    .selectFrom("runnableProducts as mine")
    .innerJoin("products", "products.id", "mine.productId")
    .innerJoin("users", "users.id", "authorId")
    .select(["products.id", "title", "users.name as authorName", "products.createdAt"])
    .where("mine.userId", "=", userId)
    .where("products.type", "=", "PROMPT")
    .orderBy("products.id", "desc")
    .limit(limit)
    .execute();
