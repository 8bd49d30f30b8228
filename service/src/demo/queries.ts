import { sql } from "kysely";
import { tellLists } from "../catalogue/listing.ts";
import type { Database, Tx } from "../db/database.ts";
import { forgetReviewOf } from "../reviews/rating.ts";

export type DemoState = "none" | "stocking" | "stocked" | "loaded" | "removed";

export async function findState(db: Database): Promise<{ demo: DemoState; hasUsers: boolean }> {
  const { rows } = await sql<{ demo: DemoState; hasUsers: boolean }>`
    select demo, exists (select 1 from users) as "hasUsers" from installation`.execute(db);
  return rows[0]!;
}

export const setState = (db: Database, demo: DemoState) =>
  db.updateTable("installation").set({ demo }).execute();

export const listStock = (db: Database) =>
  db
    .selectFrom("products as p")
    .innerJoin("users as u", "u.id", "p.author_id")
    .select(["p.id", "p.title"])
    .where("u.demo", "=", true)
    .orderBy("p.title")
    .execute();

/** Views as plain numbers: a demo needs no viewers. */
export const setViews = (db: Database, views: { productId: string; views: number }[]) =>
  sql`
    with seen as (
      update product_stats s set views = v.views
        from unnest(${views.map((row) => row.productId)}::uuid[], ${views.map((row) => row.views)}::bigint[])
             as v (product_id, views)
       where s.product_id = v.product_id returning s.product_id, s.views)
    update listings l set views = seen.views from seen where l.product_id = seen.product_id`.execute(db);

/** What the demo's people wrote of products that stay, whose ratings must stay true. */
const listReviewsOfOthers = (tx: Tx) =>
  tx
    .selectFrom("reviews as r")
    .innerJoin("users as u", "u.id", "r.author_id")
    .innerJoin("products as p", "p.id", "r.product_id")
    .innerJoin("users as seller", "seller.id", "p.author_id")
    .where("u.demo", "=", true)
    .where("seller.demo", "=", false)
    .select(["r.author_id as authorId", "r.product_id as productId"])
    .orderBy("r.product_id")
    .execute();

/**
 * Deletes the demo's people with all that hangs on them, and what others bought of them. It reaches into every
 * room's tables, which nothing else may do: only here does anything vanish without a trace.
 */
export async function deleteDemo(
  db: Database,
): Promise<{ people: number; products: number; orders: number }> {
  const { rows } = await sql<{ people: number; products: number; orders: number }>`
    with gone_people as (select id from users where demo),
         gone_products as (select id from products where author_id in (select id from gone_people)),
         gone_orders as (select id from orders
                          where product_id in (select id from gone_products)
                             or buyer_id in (select id from gone_people))
    select (select count(*) from gone_people) as people, (select count(*) from gone_products) as products,
           (select count(*) from gone_orders) as orders`.execute(db);
  const people = sql`select id from users where demo`;
  const products = sql`select id from products where author_id in (${people})`;
  await db.transaction().execute(async (tx) => {
    await sql`delete from executions where product_id in (${products}) or user_id in (${people})`.execute(tx);
    for (const { authorId, productId } of await listReviewsOfOthers(tx))
      await forgetReviewOf(tx, authorId, productId);
    await sql`delete from review_reports where reporter_id in (${people})`.execute(tx);
    await sql`delete from reviews where product_id in (${products})`.execute(tx);
    await sql`delete from entitlements where product_id in (${products}) or buyer_id in (${people})`.execute(
      tx,
    );
    await sql`delete from orders where product_id in (${products}) or buyer_id in (${people})`.execute(tx);
    await sql`delete from product_views where product_id in (${products})`.execute(tx);
    await sql`delete from product_days where product_id in (${products})`.execute(tx);
    await sql`delete from imported_names where author_id in (${people})`.execute(tx);
    await sql`delete from listings where product_id in (${products})`.execute(tx);
    await sql`delete from product_stats where product_id in (${products})`.execute(tx);
    // Their versions go with them: by themselves, published ones would stay.
    await sql`delete from products where author_id in (${people})`.execute(tx);
    await sql`delete from events e where exists (
      select 1 from event_recipients r where r.event_id = e.id and r.user_id in (${people}))`.execute(tx);
    await sql`delete from users where demo`.execute(tx);
    await tellLists(tx);
  });
  return rows[0]!;
}
