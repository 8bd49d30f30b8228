import { sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";

/** The salt of a day, created at its first view on any node; null: the day is closed. */
export async function findOrCreateSalt(db: Queries, day: string, sealedSalt: string): Promise<string | null> {
  await sql`insert into view_salts (day, sealed_salt) values (${day}, ${sealedSalt}) on conflict do nothing`.execute(
    db,
  );
  const { rows } = await sql<{ salt: string | null }>`
    select sealed_salt as salt from view_salts where day = ${day}`.execute(db);
  return firstOf(rows).salt;
}

export interface ViewRow {
  productId: string;
  day: string;
  viewer: Buffer;
}

/**
 * Stores new views and increments the counters in one statement. Views of a closed day or a deleted product are dropped.
 * Rows are locked in order of id to avoid deadlocks, and the day with a shared lock, so that it is not closed meanwhile.
 */
export const addViews = (db: Queries, views: ViewRow[]) =>
  sql`
    with open as (
      select day from view_salts
       where day = any (${[...new Set(views.map((view) => view.day))]}::date[]) and sealed_salt is not null
       order by day for share),
    seen as (
      insert into product_views (day, product_id, viewer)
      select v.* from unnest(${views.map((view) => view.day)}::date[],
                             ${views.map((view) => view.productId)}::uuid[],
                             ${views.map((view) => view.viewer)}::bytea[]) as v (day, product_id, viewer)
        join open on open.day = v.day
        join products p on p.id = v.product_id
       order by v.day, v.product_id, v.viewer
      on conflict do nothing returning product_id, day),
    fresh as materialized (select product_id, day, count(*) as views from seen group by product_id, day),
    locked as materialized (
      select product_id from product_stats where product_id in (select product_id from fresh)
       order by product_id for no key update),
    counted as (
      update product_stats s set views = s.views + n.views
        from locked l
        join (select product_id, sum(views)::bigint as views from fresh group by product_id) n
             on n.product_id = l.product_id
       where s.product_id = l.product_id
      returning s.product_id, s.views),
    authors as (
      insert into author_daily_views as d (author_id, day, views)
      select p.author_id, f.day, sum(f.views)
        from fresh f join counted c on c.product_id = f.product_id join products p on p.id = f.product_id
       group by 1, 2 order by 1, 2
      on conflict (author_id, day) do update set views = d.views + excluded.views),
    days as (
      insert into product_daily_views as d (product_id, day, views)
      select f.product_id, f.day, f.views from fresh f join counted c on c.product_id = f.product_id
      on conflict (product_id, day) do update set views = d.views + excluded.views)
    -- A listing moves in every one of its indexes: the order follows by hundredths.
    update listings l set views = c.views from counted c
     where l.product_id = c.product_id and c.views > l.views + l.views / 100`.execute(db);

/** Without the salt, views can no longer be linked to viewers. */
export const deleteSalts = (db: Queries, before: string) =>
  sql`update view_salts set sealed_salt = null where day < ${before} and sealed_salt is not null`.execute(db);

export async function deleteViewers(db: Queries, before: string, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from product_views where (day, product_id, viewer) in (
      select v.day, v.product_id, v.viewer from product_views v where v.day < ${before}
       order by v.day, v.product_id, v.viewer limit ${limit})`.execute(db);
  return Number(numAffectedRows ?? 0n);
}
