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
  /** Of a product whose id was searched for. */
  id?: string | undefined;
  search?: string | undefined;
  order: "newest" | "oldest";
}

/** Words of a person: in them `%` and `_` are letters. */
const likePattern = (text: string) => `%${text.replace(/[\\%_]/g, "\\$&")}%`;

function matchingProducts(db: Queries, { status, authorId, id, search }: ModeratedFilter) {
  let found = db.selectFrom("products as p");
  if (status) found = found.where("p.status", "=", status);
  if (authorId) found = found.where("p.author_id", "=", authorId);
  if (id) found = found.where("p.id", "=", id);
  else if (search) found = found.where("p.title", "ilike", likePattern(search));
  return found;
}

export async function listModerated(db: Queries, filter: ModeratedFilter): Promise<Page<ModeratedRow>> {
  const direction = filter.order === "newest" ? "desc" : "asc";
  const items = await matchingProducts(db, filter)
    .innerJoin("users as u", "u.id", "p.author_id")
    .select(["p.id", "p.title", "p.type", "p.status", "p.category", "p.currency", "p.version"])
    .select(["p.moved_at as movedAt", "p.price_minor as priceMinor", "p.author_id as authorId"])
    .select(["p.created_at as createdAt", "p.updated_at as updatedAt"])
    .select(["p.first_published_at as firstPublishedAt", "p.moderation_code as moderationCode"])
    .select(["p.moderation_reason as moderationReason", "p.moderated_at as moderatedAt"])
    .select(["u.name as sellerName", "u.email as sellerEmail", "u.verified as sellerVerified"])
    .select("u.banned_at as sellerBannedAt")
    .select(
      sql`(select jsonb_object_agg(status, count) from
            (select status, count(*) from products where author_id = p.author_id group by status) c)`.as(
        "sellerProducts",
      ),
    )
    .orderBy("p.moved_at", direction)
    .orderBy("p.id", direction)
    .limit(filter.limit)
    .offset(offsetOf(filter))
    .$castTo<ModeratedRow>()
    .execute();
  return { items, ...(await countRows(db, matchingProducts(db, filter).select("p.id"))) };
}

/** A move as the audit log keeps it. */
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
  /** As clients see it, and the audit log. */
  productId: string;
  authorId: string;
}

/** The last ones of each product, newest first. */
export async function listLastMoves(
  db: Queries,
  products: ProductRef[],
  { deeds, most }: { deeds: string[]; most: number },
): Promise<AuditedMoveRow[]> {
  const { rows } = await sql<AuditedMoveRow>`
    select p.id as "productId", p.author_id as "authorId", a.actor_id as "actorId", a.action, a.details,
           a.created_at as "createdAt"
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
  const found = db.selectFrom("audit_log").where("target_id", "=", productId).where("action", "in", deeds);
  const items = await found
    .select(["actor_id as actorId", "action", "details", "created_at as createdAt"])
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
