import type { ProductStatus, Variable } from "@stoa/contract";
import { sql } from "kysely";
import type { Queries } from "../../platform/db/database.ts";
import type { StoredFile, StoredImage } from "./attachments.ts";

export interface CheckedProductRow {
  id: string;
  authorId: string;
  title: string;
  lang: string | null;
  type: "PROMPT" | "WORKFLOW";
  content: string;
  contentFormat: "text" | "messages";
  variables: Variable[];
}

export interface ReleasedVersionRow {
  version: string;
  title: string;
  description: string;
  content: string;
  contentFormat: "text" | "messages";
  variables: Variable[];
  files: StoredFile[];
  createdAt: Date;
  approvedDetails: string | null;
  /** Of the product now. */
  images: StoredImage[];
}

export async function findCheckedProduct(db: Queries, id: string): Promise<CheckedProductRow | undefined> {
  const { rows } = await sql<CheckedProductRow>`
    select p.id, p.author_id as "authorId", p.title, p.lang, p.type, v.content, v.content_format as "contentFormat",
           v.variables
      from products p join product_versions v on v.product_id = p.id and v.version = p.version
     where p.id = ${id}`.execute(db);
  return rows[0];
}

export async function findReleasedVersion(db: Queries, id: string): Promise<ReleasedVersionRow | undefined> {
  const { rows } = await sql<ReleasedVersionRow>`
    select v.version, v.title, v.description, v.content, v.content_format as "contentFormat",
           v.variables, v.files, v.created_at as "createdAt", p.approved_details as "approvedDetails", p.images
      from products p join product_versions v on v.product_id = p.id and v.numbers = p.released
     where p.id = ${id}`.execute(db);
  return rows[0];
}

/** Other products with the same text or title, and the newest of the seller: at most `limit` of each. */
export async function findLikelyCopies(
  db: Queries,
  { id, authorId, content }: CheckedProductRow,
  limit: number,
): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    (select v.product_id as id from product_versions v
      where text_digest(v.content) = text_digest(${content}) and v.product_id <> ${id} limit ${limit})
    union
    (select l.product_id from listings l
      where l.status = 'published' and l.title = (select title from listings where product_id = ${id})
        and l.product_id <> ${id} limit ${limit})
    union
    (select p.id from products p where p.author_id = ${authorId} and p.id <> ${id} order by p.id desc limit ${limit})`.execute(
    db,
  );
  return rows.map((row) => row.id);
}

export interface ComparedRow {
  id: string;
  title: string;
  status: ProductStatus;
  authorId: string;
  authorName: string;
  titleSimilarity: number;
  /** The beginning of the newest version's content. */
  text: string;
}

export async function listCompared(
  db: Queries,
  ids: string[],
  { title, characters }: { title: string; characters: number },
): Promise<ComparedRow[]> {
  const { rows } = await sql<ComparedRow>`
    select p.id, p.title, p.status, p.author_id as "authorId", u.name as "authorName",
           similarity(lower(p.title), lower(${title}))::float8 as "titleSimilarity",
           left(v.content, ${characters}) as text
      from products p join users u on u.id = p.author_id
      join product_versions v on v.product_id = p.id and v.version = p.version
     where p.id = any (${ids}::uuid[])`.execute(db);
  return rows;
}
