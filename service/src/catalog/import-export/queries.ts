import type { ProductStatus, Variable } from "@stoa/contract";
import { sql } from "kysely";
import type { Queries, Tx } from "../../platform/db/database.ts";
import type { StoredSample } from "../products/samples.ts";

export interface ExportRow {
  id: string;
  status: ProductStatus;
  title: string;
  description: string;
  lang: string | null;
  type: string;
  category: string | null;
  priceMinor: number;
  currency: string;
  commissionBasisPoints: number | null;
  content: string;
  contentFormat: "text" | "messages";
  preview: string;
  requirements: string[];
  features: string[];
  license: string | null;
  samples: StoredSample[];
  tags: string[];
  compatibility: string[];
  models: Record<string, string>;
  variables: Variable[];
  version: string;
  changelog: string;
}

/** The author's products, or those of the ids, after the given id, in order of id, with their newest content. */
export async function listExportRows(
  db: Queries,
  { authorId, ids, after, limit }: { authorId: string; ids?: string[]; after: string | null; limit: number },
): Promise<ExportRow[]> {
  const { rows } = await sql<ExportRow>`
    select p.id, p.status, p.title, p.description, p.lang, p.type, p.category, p.price_minor,
           p.currency, v.content, v.content_format, p.preview, p.requirements, p.features, p.license, p.samples, p.tags,
           p.commission_basis_points, p.compatibility, p.models, v.variables, v.version, v.changelog
      from products p
      join product_versions v on v.product_id = p.id and v.version = p.version
     where p.author_id = ${authorId} and p.status <> 'deleted' ${ids ? sql`and p.id = any (${ids}::uuid[])` : sql``}
       and (${after}::uuid is null or p.id > ${after})
     order by p.id limit ${limit}`.execute(db);
  return rows;
}

/** Filters the ids to the author's products that are not deleted. */
export async function listOwnIds(db: Queries, authorId: string, ids: string[]): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select id from products
     where author_id = ${authorId} and id = any (${ids}::uuid[]) and status <> 'deleted'`.execute(db);
  return rows.map(({ id }) => id);
}

/** By the author's own names. The name of a deleted product is free. */
export async function listByName(db: Queries, authorId: string, names: string[]) {
  const { rows } = await sql<{ name: string; productId: string }>`
    select i.name, i.product_id
      from imported_names i join products p on p.id = i.product_id
     where i.author_id = ${authorId} and i.name = any (${names}::text[]) and p.status <> 'deleted'`.execute(
    db,
  );
  return rows;
}

export const upsertNames = (tx: Tx, authorId: string, names: { name: string; productId: string }[]) =>
  sql`
    insert into imported_names (author_id, name, product_id)
    select ${authorId}, n.* from unnest(${names.map(({ name }) => name)}::text[],
                                        ${names.map(({ productId }) => productId)}::uuid[]) as n (name, product_id)
    on conflict (author_id, name) do update set product_id = excluded.product_id`.execute(tx);

export const deleteNames = (tx: Tx, authorId: string) =>
  tx.deleteFrom("importedNames").where("authorId", "=", authorId).execute();
