import { sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";
import type { Lock } from "../../platform/db/locks.ts";
import type { StoredFile } from "../products/attachments.ts";

/** The sweep locks it exclusively to clear keys; backups share it. */
const BLOBS_LOCK_KEY = "blobs are held";

/** Marks the bytes as in use and returns their storage name. One statement, so that two uploads share a name. */
export async function touchBlob(
  db: Queries,
  blob: { key: string; name: string; size: number; touchedAt: Date },
): Promise<string> {
  const { name } = await db
    .insertInto("blobs")
    .values(blob)
    .onConflict((conflict) => conflict.column("key").doUpdateSet({ touchedAt: blob.touchedAt }))
    .returning("name")
    .executeTakeFirstOrThrow();
  return name;
}

export const findBlob = (db: Queries, key: string) =>
  db.selectFrom("blobs").select(["name", "size"]).where("key", "=", key).executeTakeFirst();

/** Only while a product shows the image: a removed image is 404 at once. Its bytes stay while moderators may compare it with a change. */
export async function findImage(db: Queries, hash: string, key: string) {
  const { rows } = await sql<{ name: string; size: number }>`
    select name, size from blobs
     where key = ${key}
       and exists (select from products where images <> '[]' and images @> ${JSON.stringify([{ hash }])}::jsonb)
    `.execute(db);
  return rows[0];
}

/** Only while an account shows it, as for images. A banned account shows none. */
export async function findAvatar(db: Queries, hash: string, key: string) {
  const { rows } = await sql<{ name: string; size: number }>`
    select name, size from blobs
     where key = ${key} and exists (select from users where avatar = ${hash} and banned_at is null)`.execute(
    db,
  );
  return rows[0];
}

const IS_REFERENCED = sql<boolean>`(
  exists (
    select from product_versions v
     where b.key like 'files/%' and v.files <> '[]'
       and v.files @> jsonb_build_array(jsonb_build_object('sha256', substr(b.key, 7))))
  or exists (
    select from products p
     where b.key like 'images/%' and p.images <> '[]'
       and p.images @> jsonb_build_array(jsonb_build_object('hash', substr(b.key, 8, 64))))
  or exists (
    select from products p
     where b.key like 'images/%' and p.approved_images <> '{}' and p.status not in ('published', 'deleted')
       and p.approved_images @> array[substr(b.key, 8, 64)])
  or exists (
    select from users u where b.key like 'avatars/%' and u.avatar = substr(b.key, 9, 64)))`;

/** Removes the key of blobs that nothing references, and that no upload touched since `cutoff`. */
export const markUnreferencedBlobs = (db: Queries, cutoff: Date) =>
  sql`
    update blobs b set key = 'gone/' || b.name
     where b.touched_at < ${cutoff} and b.key not like 'gone/%' and not ${IS_REFERENCED}`.execute(db);

/** Returns false while a backup holds the shared lock. */
export async function tryLockBlobs(tx: Queries): Promise<boolean> {
  const { rows } = await sql<{ may: boolean }>`
    select pg_try_advisory_xact_lock(hashtext(${BLOBS_LOCK_KEY})) as may`.execute(tx);
  return firstOf(rows).may;
}

export const BLOBS_LOCK: Lock = { key: BLOBS_LOCK_KEY, name: "the lock on stored files", isShared: true };

/** In order of storage name, after the given one. */
export async function listBlobs(db: Queries, after: string, limit: number) {
  const { rows } = await sql<{ name: string; isReferredTo: boolean }>`
    select b.name, ${IS_REFERENCED} as "isReferredTo" from blobs b
     where b.name > ${after} and b.key not like 'gone/%' order by b.name limit ${limit}`.execute(db);
  return rows;
}

export const listUnreferencedBlobs = (db: Queries, limit: number) =>
  db.selectFrom("blobs").select("name").where("key", "like", "gone/%").limit(limit).execute();

export const deleteBlob = (db: Queries, name: string) =>
  db.deleteFrom("blobs").where("name", "=", name).where("key", "like", "gone/%").execute();

export interface FileForReader {
  file: StoredFile;
  reason: "author" | "purchased" | "admin";
}

/**
 * A file of a version that the reader may download: of the bought and released major line, or any version for the
 * author. An administrator gets every file; the link was only issued with two factors.
 */
export async function findFileForReader(
  db: Queries,
  ids: { productId: string; fileId: string; readerId: string },
): Promise<FileForReader | undefined> {
  const { rows } = await sql<FileForReader>`
    select f.file, case when p.author_id = u.id then 'author' when e.major is null then 'admin' else 'purchased' end as reason
      from products p
      join users u on u.id = ${ids.readerId} and u.closed_at is null and u.banned_at is null
      left join entitlements e on e.product_id = p.id and e.buyer_id = u.id and e.status = 'active'
      join product_versions v on v.product_id = p.id
       and (p.author_id = u.id or u.role = 'admin' or v.numbers[1] = e.major and v.numbers <= p.released)
      cross join lateral jsonb_array_elements(v.files) as f (file)
     where p.id = ${ids.productId} and f.file ->> 'id' = ${ids.fileId}
       and (p.status <> 'deleted' or e.major is not null or u.role = 'admin')
     limit 1`.execute(db);
  return rows[0];
}

export async function hasFile(db: Queries, productId: string, fileId: string): Promise<boolean> {
  const { rows } = await sql`
    select from product_versions
     where product_id = ${productId} and files @> ${JSON.stringify([{ id: fileId }])}::jsonb limit 1`.execute(
    db,
  );
  return rows.length > 0;
}
