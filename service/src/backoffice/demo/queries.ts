import { sql } from "kysely";
import { deleteReviewOf } from "../../catalog/reviews/rating.ts";
import { notifyListsChanged } from "../../catalog/search/listing.ts";
import { firstOf } from "../../core/required.ts";
import type { Database, Tx } from "../../platform/db/database.ts";

export type DemoState = "none" | "stocking" | "stocked" | "loaded" | "removed";

export async function readDemoState(db: Database): Promise<{ demo: DemoState; hasUsers: boolean }> {
  const { rows } = await sql<{ demo: DemoState; hasUsers: boolean }>`
    select demo, exists (select 1 from users) as "hasUsers" from installation`.execute(db);
  return firstOf(rows);
}

export const setDemoState = (db: Database, demo: DemoState) =>
  db.updateTable("installation").set({ demo }).execute();

export const listDemoProducts = (db: Database) =>
  db
    .selectFrom("products as p")
    .innerJoin("users as u", "u.id", "p.authorId")
    .select(["p.id", "p.title", "p.authorId"])
    .where("u.demo", "=", true)
    .orderBy("p.title")
    .execute();

/** Sets counters without viewers. */
export const setViews = (db: Database, views: { productId: string; views: number }[]) =>
  sql`
    with seen as (
      update product_stats s set views = v.views
        from unnest(${views.map((row) => row.productId)}::uuid[], ${views.map((row) => row.views)}::bigint[])
             as v (product_id, views)
       where s.product_id = v.product_id returning s.product_id, s.views)
    update listings l set views = seen.views from seen where l.product_id = seen.product_id`.execute(db);

/** Reviews by demo users of other products, whose ratings must stay correct. */
const listReviewsOfOthers = (tx: Tx) =>
  tx
    .selectFrom("reviews as r")
    .innerJoin("users as u", "u.id", "r.authorId")
    .innerJoin("products as p", "p.id", "r.productId")
    .innerJoin("users as seller", "seller.id", "p.authorId")
    .where("u.demo", "=", true)
    .where("seller.demo", "=", false)
    .select(["r.authorId", "r.productId"])
    .orderBy("r.productId")
    .execute();

export interface DemoRows {
  people: number;
  products: number;
  orders: number;
}

const PEOPLE = sql`(select id from users where demo)`;
const PRODUCTS = sql`(select id from products where author_id in ${PEOPLE})`;
const ORDERS = sql`(select id from orders where product_id in ${PRODUCTS} or buyer_id in ${PEOPLE})`;

export async function countDemo(tx: Tx): Promise<DemoRows> {
  const { rows } = await sql<DemoRows>`
    select (select count(*) from ${PEOPLE} p) as people, (select count(*) from ${PRODUCTS} p) as products,
           (select count(*) from ${ORDERS} o) as orders`.execute(tx);
  return firstOf(rows);
}

/**
 * Deletes the demo users with all their rows, and unpaid orders of others for demo products. Only this function writes
 * to other rooms' tables. An order with a receipt stays, with its product, seller and buyer.
 */
export async function deleteDemo(tx: Tx): Promise<void> {
  for (const { authorId, productId } of await listReviewsOfOthers(tx))
    await deleteReviewOf(tx, authorId, productId);
  await sql`delete from review_reports where reporter_id in ${PEOPLE}`.execute(tx);
  await sql`delete from orders o where id in ${ORDERS} and completed_at is null
               and not exists (select from refunds r where r.order_id = o.id)`.execute(tx);
  await sql`delete from imported_names where author_id in ${PEOPLE}`.execute(tx);
  await deleteUnsoldProducts(tx);
  await sql`delete from events e where exists (
    select 1 from event_recipients r where r.event_id = e.id and r.user_id in ${PEOPLE})`.execute(tx);
  await deleteUnbookedPeople(tx);
}

async function deleteUnsoldProducts(tx: Tx): Promise<void> {
  const unsold = sql`(select p.id from products p where p.author_id in ${PEOPLE}
                         and not exists (select from orders o where o.product_id = p.id))`;
  for (const table of [
    ...["executions", "reviews", "productViews", "productDailyViews", "listings", "productStats"],
    "discountCodes",
  ])
    await sql`delete from ${sql.table(table)} where product_id in ${unsold}`.execute(tx);
  // Before their versions, since a published version cannot be deleted alone.
  await sql`delete from products where id in ${unsold}`.execute(tx);
  await recountAuthorDays(tx);
}

/** For the remaining products. */
async function recountAuthorDays(tx: Tx): Promise<void> {
  await sql`delete from author_daily_views where author_id in ${PEOPLE}`.execute(tx);
  await sql`insert into author_daily_views (author_id, day, views)
            select p.author_id, d.day, sum(d.views) from product_daily_views d join products p on p.id = d.product_id
             where p.author_id in ${PEOPLE} group by 1, 2`.execute(tx);
}

async function deleteUnbookedPeople(tx: Tx): Promise<void> {
  const unbooked = sql`(select u.id from users u where u.demo
    and not exists (select from orders where u.id in (buyer_id, seller_id, referrer_id))
    and not exists (select from products where author_id = u.id)
    and not exists (select from subscription_payments where user_id = u.id and status = 'completed'))`;
  await sql`delete from discount_codes where seller_id in ${unbooked}`.execute(tx);
  for (const table of [
    ...["executions", "referralCodes", "paymentMethods", "paymentCustomers"],
    "subscriptionPayments",
  ])
    await sql`delete from ${sql.table(table)} where user_id in ${unbooked}`.execute(tx);
  await sql`delete from users where id in ${unbooked}`.execute(tx);
}

/** Marks sold demo products as deleted, so that only their buyers see them. */
export async function delistDemo(tx: Tx, now: Date): Promise<void> {
  await sql`
    update products set status = 'deleted', deleted_at = ${now}, moved_at = ${now}, updated_at = ${now},
           revision = revision + 1
     where author_id in ${PEOPLE} and status <> 'deleted'`.execute(tx);
  await sql`update listings set status = 'deleted', updated_at = ${now} where product_id in ${PRODUCTS}`.execute(
    tx,
  );
  await sql`update search_documents set published = false where product_id in ${PRODUCTS}`.execute(tx);
  await notifyListsChanged(tx);
}

/** Returns the ids of the remaining demo users. */
export async function clearDemoFlag(tx: Tx): Promise<string[]> {
  const people = await tx
    .updateTable("users")
    .set({ demo: false })
    .where("demo", "=", true)
    .returning("id")
    .execute();
  return people.map(({ id }) => id);
}
