import { sql } from "kysely";
import type { Queries } from "../../platform/db/database.ts";

export interface DependencyRow {
  id: string;
  title: string;
  type: "PROMPT" | "WORKFLOW";
  priceMinor: number;
  currency: string;
  onSale: boolean;
  /** The newest published version; null: never published. */
  version: string | null;
  content: string | null;
  /** Those of the pinned versions that exist in the major line of a new buyer. */
  versions: string[];
  /** Whether the reader is its author or bought it. */
  owned: boolean;
}

/** `readerId` null: an anonymous reader. Unknown ids are missing from the result. */
export async function findDependencies(
  db: Queries,
  ids: readonly string[],
  readerId: string | null,
): Promise<DependencyRow[]> {
  const { rows } = await sql<DependencyRow>`
    select p.id, p.title, p.type, p.price_minor, p.currency,
           p.status = 'published' and u.banned_at is null as "onSale", v.version, v.content,
           coalesce(line.versions, '{}') as versions,
           (p.author_id = ${readerId} or e.order_id is not null) is true as owned
      from products p
      join users u on u.id = p.author_id
      left join product_versions v on v.product_id = p.id and v.numbers = p.released
      left join entitlements e on e.product_id = p.id and e.buyer_id = ${readerId} and e.status = 'active'
      left join lateral (
        select array_agg(l.version) as versions from product_versions l
         where l.product_id = p.id and l.numbers <= p.released and l.numbers[1] = p.released[1]) line on true
     where p.id = any (${ids}::uuid[])`.execute(db);
  return rows;
}
