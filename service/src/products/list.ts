import { createHash } from "node:crypto";
import type { api, Input } from "@stoa/contract";
import { type Caller, type Context, isMember } from "../context.ts";
import { offsetOf, type Page } from "../db/paging.ts";
import { invalidRequest } from "../errors.ts";
import { RawJson } from "../http/route.ts";
import { toUuid } from "../ids.ts";
import { isCurrency, toMinor } from "../money/amount.ts";
import { type VolatileNumbers, withNumbers } from "./card.ts";

type ListQuery = Input<typeof api.products.list>["query"];

/** A total is exact up to here; above, counting would cost more than the page itself. */
const EXACT_TOTAL = { filtered: 10_000, searched: 1_000 };
/** Statements worth a name: PostgreSQL keeps every named one. */
const MAX_NAMED_STATEMENTS = 100;
const MAX_KEPT_TOTALS = 2_000;

/** Conditions with their values: `$` stands for the value that comes with it. */
class Where {
  readonly values: unknown[] = [];
  readonly clauses: string[] = [];

  value(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }

  add(clause: string, ...values: unknown[]): void {
    const texts = values.map((value) => this.value(value));
    this.clauses.push(clause.replace(/\$/g, () => texts.shift()!));
  }

  get sql(): string {
    return this.clauses.join(" and ");
  }
}

const SORT_COLUMNS = {
  createdAt: "p.created_at",
  updatedAt: "p.updated_at",
  publishedAt: "p.published_at",
  price: "p.price_minor",
  title: "p.title",
  rating: "s.rating_score",
  popularity: "s.purchases",
  views: "s.views",
  trending: "s.trending",
  relevance: "s.purchases",
} as const satisfies Record<ListQuery["sort"], string>;

function priceBound(query: ListQuery, field: "minPrice" | "maxPrice", currency: string): number {
  const minor = toMinor(query[field]!, currency);
  if (minor === null) throw invalidRequest(field, `is no amount of ${currency}`);
  return minor;
}

/** The caller's own shelf shows every state; everybody else's shows what is for sale. */
function addAuthor(where: Where, caller: Caller, { author, status }: ListQuery): void {
  const callerId = isMember(caller) ? caller.userId : null;
  const authorId = author === "me" ? callerId : author === undefined ? undefined : toUuid("usr", author);
  const own = callerId !== null && authorId === callerId;
  if (status !== undefined && !own)
    throw invalidRequest("status", "is only for your own products: add author=me");
  if (!own) where.add("p.status = 'published'");
  else if (status) where.add("p.status = $", status);
  else where.add("p.status <> 'deleted'");
  if (authorId !== undefined) where.add("p.author_id = $", authorId);
}

function whereOf(ctx: Context, caller: Caller, query: ListQuery): Where {
  const where = new Where();
  const currency = query.currency ?? ctx.config.currency;
  if (!isCurrency(currency)) throw invalidRequest("currency", "is no ISO 4217 code");
  const byPrice = query.minPrice > 0 || query.maxPrice !== undefined || query.sort === "price";
  addAuthor(where, caller, query);
  if (query.maxPrice !== undefined && query.minPrice > query.maxPrice) {
    throw invalidRequest("minPrice", "must not be greater than maxPrice");
  }
  if (byPrice || query.currency) where.add("p.currency = $", currency);
  if (query.minPrice > 0) where.add("p.price_minor >= $::bigint", priceBound(query, "minPrice", currency));
  if (query.maxPrice !== undefined) {
    where.add("p.price_minor <= $::bigint", priceBound(query, "maxPrice", currency));
  }
  if (query.type) where.add("p.type = $", query.type);
  if (query.category) {
    where.add("p.category in (select slug from categories where $ in (slug, parent))", query.category);
  }
  if (query.provider) where.add("p.compatibility @> array[$]::text[]", query.provider);
  if (query.tag) where.add("p.tags @> array[$]::text[]", query.tag.toLowerCase());
  if (query.minRating) {
    where.add("s.rating_count > 0 and s.rating_sum >= s.rating_count * $::numeric", query.minRating);
  }
  if (query.search) where.add("p.search @@ stoa_search_query($)", query.search);
  return where;
}

/** Every order ends with the id, so that no product stands on two pages. */
function orderOf(where: Where, query: ListQuery): string {
  if (query.search && query.sort === "relevance") {
    const rank = `ts_rank(p.search, stoa_search_query(${where.value(query.search)}))`;
    return `${rank} desc, s.purchases desc, p.id desc`;
  }
  const way = query.sort === "relevance" ? "desc" : query.order;
  const id = SORT_COLUMNS[query.sort].startsWith("s.") ? "s.product_id" : "p.id";
  // Drafts were never published: they come last, and first when the order is turned around.
  const nulls = query.sort === "publishedAt" ? (way === "desc" ? " nulls last" : " nulls first") : "";
  return `${SORT_COLUMNS[query.sort]} ${way}${nulls}, ${id} ${way}`;
}

const named = new Map<string, string>();
/**
 * A name saves planning, which costs more than running a list. Only where no values come with it: after five runs of a
 * named statement PostgreSQL freezes one plan for all values, and a filter's plan depends on what it filters by.
 */
function nameOf(text: string, values: unknown[]): { name?: string } {
  if (values.length > 0) return {};
  const known = named.get(text);
  if (known) return { name: known };
  if (named.size >= MAX_NAMED_STATEMENTS) return {};
  const name = `list_${createHash("sha256").update(text).digest("hex").slice(0, 16)}`;
  named.set(text, name);
  return { name };
}

interface CardRow extends VolatileNumbers {
  card: string;
  revision: number;
}

async function pageOf(ctx: Context, caller: Caller, query: ListQuery): Promise<CardRow[]> {
  const where = whereOf(ctx, caller, query);
  const order = orderOf(where, query);
  const text = `select p.card, s.views, s.purchases, s.rating_sum as "ratingSum", s.rating_count as "ratingCount",
       (select revision from catalogue) as revision
    from products p join product_stats s on s.product_id = p.id
   where ${where.sql}
   order by ${order} limit ${query.limit} offset ${offsetOf(query)}`;
  const { rows } = await ctx.pool.query<CardRow>({
    ...nameOf(text, where.values),
    text,
    values: where.values,
  });
  return rows;
}

interface Total {
  revision: number;
  total: number;
}

async function countOf(ctx: Context, caller: Caller, query: ListQuery): Promise<Total> {
  const where = whereOf(ctx, caller, query);
  const bound = query.search ? EXACT_TOTAL.searched : EXACT_TOTAL.filtered;
  const stats = query.minRating === undefined ? "" : "join product_stats s on s.product_id = p.id";
  const text = `select (select revision from catalogue) as revision, count(*) as total
    from (select 1 from products p ${stats} where ${where.sql} limit ${bound + 1}) found`;
  const { rows } = await ctx.pool.query<Total>({ ...nameOf(text, where.values), text, values: where.values });
  return rows[0]!;
}

/** What decides the total of a list; null where it is not kept. */
function totalKey(query: ListQuery): string | null {
  // Ratings move without a new revision of the catalogue, and what one author sees is not worth keeping.
  if (query.minRating !== undefined || query.author !== undefined) return null;
  const { page: _page, limit: _limit, order: _order, sort, ...filters } = query;
  return JSON.stringify([filters, sort === "price"]);
}

/**
 * Totals by filter, each true for one revision of the catalogue. The revision is read with every page, so that a
 * total is never older than the page beside it, on whichever node the change was made.
 */
export class Totals {
  readonly #kept = new Map<string, Total>();

  find(key: string, revision: number): number | undefined {
    const kept = this.#kept.get(key);
    return kept?.revision === revision ? kept.total : undefined;
  }

  keep(key: string, total: Total): void {
    if (this.#kept.size >= MAX_KEPT_TOTALS) this.#kept.clear();
    this.#kept.set(key, total);
  }
}

async function totalOf(ctx: Context, caller: Caller, query: ListQuery, rows: CardRow[]): Promise<number> {
  const key = totalKey(query);
  const known = key && rows[0] ? ctx.totals.find(key, rows[0].revision) : undefined;
  if (known !== undefined) return known;
  const counted = await countOf(ctx, caller, query);
  if (key) ctx.totals.keep(key, counted);
  return counted.total;
}

/** Published products that fit the filters, or with `author=me` the caller's own in every state. */
export async function listProducts(ctx: Context, caller: Caller, query: ListQuery): Promise<Page<RawJson>> {
  const rows = await pageOf(ctx, caller, query);
  const total = await totalOf(ctx, caller, query, rows);
  const bound = query.search ? EXACT_TOTAL.searched : EXACT_TOTAL.filtered;
  return {
    items: rows.map((row) => new RawJson(withNumbers(row.card, row))),
    total: Math.min(total, bound),
    ...(total > bound && { totalIsEstimate: true as const }),
  };
}
