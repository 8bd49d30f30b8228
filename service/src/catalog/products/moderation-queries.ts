import type { ProductStatus, SuspensionReason } from "@stoa/contract";
import { sql } from "kysely";
import type { Queries } from "../../platform/db/database.ts";
import { countRows, offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import type { ModerationDecision } from "./queries.ts";

export interface ModeratedRow extends ModerationDecision {
  id: string;
  title: string;
  type: "PROMPT" | "WORKFLOW";
  status: ProductStatus;
  movedAt: Date;
  category: string | null;
  priceMinor: number;
  currency: string;
  version: string;
  createdAt: Date;
  updatedAt: Date;
  firstPublishedAt: Date | null;
  authorId: string;
  sellerName: string;
  sellerEmail: string;
  sellerVerified: boolean;
  sellerBannedAt: Date | null;
  sellerProducts: Record<string, number>;
}

export interface ModeratedFilter extends Paging {
  status?: ProductStatus | undefined;
  authorId?: string | undefined;
  /** Set when the search text is a product id. */
  id?: string | undefined;
  search?: string | undefined;
  order: "newest" | "oldest";
  reported: boolean;
}

/** Escapes `%` and `_`. */
const likePattern = (text: string) => `%${text.replace(/[\\%_]/g, "\\$&")}%`;

function matchingProducts(db: Queries, { status, authorId, id, search, reported }: ModeratedFilter) {
  let found = db.selectFrom("products as p");
  if (reported)
    found = found.where("p.id", "in", (reports) =>
      reports.selectFrom("productReports").select("productId").where("resolvedAt", "is", null),
    );
  if (status) found = found.where("p.status", "=", status);
  if (authorId) found = found.where("p.authorId", "=", authorId);
  if (id) found = found.where("p.id", "=", id);
  else if (search) found = found.where("p.title", "ilike", likePattern(search));
  return found;
}

export async function listModerated(db: Queries, filter: ModeratedFilter): Promise<Page<ModeratedRow>> {
  const direction = filter.order === "newest" ? "desc" : "asc";
  const items = await matchingProducts(db, filter)
    .innerJoin("users as u", "u.id", "p.authorId")
    .select([
      "p.id",
      "p.title",
      "p.type",
      "p.status",
      "p.category",
      "p.currency",
      "p.version",
      "p.movedAt",
      "p.priceMinor",
      "p.authorId",
      "p.createdAt",
      "p.updatedAt",
      "p.firstPublishedAt",
      "p.moderationCode",
      "p.moderationReason",
      "p.moderatedAt",
      "u.name as sellerName",
      "u.email as sellerEmail",
      "u.verified as sellerVerified",
      "u.bannedAt as sellerBannedAt",
    ])
    .select(
      sql`(select jsonb_object_agg(status, count) from
            (select status, count(*) from products where author_id = p.author_id group by status) c)`.as(
        "sellerProducts",
      ),
    )
    .orderBy("p.movedAt", direction)
    .orderBy("p.id", direction)
    .limit(filter.limit)
    .offset(offsetOf(filter))
    .$castTo<ModeratedRow>()
    .execute();
  return { items, ...(await countRows(db, matchingProducts(db, filter).select("p.id"))) };
}

export interface AuditedMoveRow {
  productId: string;
  authorId: string;
  actorId: string | null;
  action: string;
  details: {
    from: ProductStatus;
    to: ProductStatus;
    reasonCode?: SuspensionReason;
    reason?: string;
  };
  createdAt: Date;
}

interface ProductRef {
  /** The public id, as in the audit log. */
  productId: string;
  authorId: string;
}

/** The latest moves of each product, newest first. */
export async function listLastMoves(
  db: Queries,
  products: ProductRef[],
  { deeds, most }: { deeds: string[]; most: number },
): Promise<AuditedMoveRow[]> {
  const { rows } = await sql<AuditedMoveRow>`
    select p.id as "productId", p.author_id, a.actor_id, a.action, a.details,
           a.created_at
      from unnest(${products.map(({ productId }) => productId)}::text[],
                  ${products.map(({ authorId }) => authorId)}::uuid[]) as p (id, author_id)
     cross join lateral (
       select * from audit_log where target_id = p.id and action = any(${deeds}::text[])
        order by id desc limit ${most}) a
     order by a.id desc`.execute(db);
  return rows;
}

export async function listMoves(
  db: Queries,
  { productId, authorId }: ProductRef,
  { deeds, ...paging }: Paging & { deeds: string[] },
): Promise<Page<AuditedMoveRow>> {
  const found = db.selectFrom("auditLog").where("targetId", "=", productId).where("action", "in", deeds);
  const items = await found
    .select(["actorId", "action", "details", "createdAt"])
    .orderBy("id", "desc")
    .limit(paging.limit)
    .offset(offsetOf(paging))
    .$castTo<Omit<AuditedMoveRow, keyof ProductRef>>()
    .execute();
  const { total } = await found
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items: items.map((item) => ({ ...item, productId, authorId })), total };
}
