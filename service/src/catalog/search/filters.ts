import type { api, Input } from "@stoa/contract";
import { findUserIdByHandle } from "../../accounts/people/handles.ts";
import { toUserId } from "../../accounts/people/users.ts";
import { type Caller, type Context, type Guest, isMember } from "../../core/context.ts";
import { invalidRequest } from "../../core/errors.ts";
import { toUuid } from "../../core/ids.ts";
import { isCurrency, toMinor } from "../../core/money/amount.ts";
import { required } from "../../core/required.ts";
import { categoryColumn } from "./categories.ts";

export type ListQuery = Input<typeof api.products.list>["query"];
export type Filters = Input<typeof api.products.facets>["query"];
export type SortedFilters = Filters & { sort?: ListQuery["sort"] };

export const PUBLISHED = "l.status = 'published'";

/** Conditions with their values; `$` stands for the condition's value. */
export class Where {
  readonly values: unknown[] = [];
  readonly clauses: string[] = [];

  value(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }

  add(clause: string, ...values: unknown[]): void {
    const texts = values.map((value) => this.value(value));
    this.clauses.push(clause.replace(/\$/g, () => required(texts.shift(), "a value for each $")));
  }

  get text(): string {
    return this.clauses.length === 0 ? "" : `where ${this.clauses.join(" and ")}`;
  }
}

function priceBound(query: Filters, field: "minPrice" | "maxPrice", currency: string): number {
  const minor = toMinor(required(query[field], field), currency);
  if (minor === null) throw invalidRequest(field, `is not a valid amount in ${currency}`);
  return Number(minor);
}

/** Sees only public products. */
export const ANONYMOUS_CALLER: Guest = { kind: "guest", guestId: "" };

/** Replaces the author's handle by the id. An unknown handle stays, and matches no product. */
export async function resolveAuthor<Query extends Filters>(ctx: Context, query: Query): Promise<Query> {
  const { author } = query;
  if (author === undefined || author === "me" || toUuid("usr", author)) return query;
  const id = await findUserIdByHandle(ctx.db, author);
  return id ? { ...query, author: toUserId(id) } : query;
}

const authorIdOf = (caller: Caller, author: string) =>
  author === "me" ? (isMember(caller) ? caller.userId : null) : toUuid("usr", author);

/** Own lists contain products in every status. */
export const isOwnProductList = (caller: Caller, { author }: Filters): boolean =>
  author !== undefined && isMember(caller) && authorIdOf(caller, author) === caller.userId;

/** The caller's own list has every status; other lists have published products. */
function addAuthor(where: Where, caller: Caller, query: Filters): void {
  const { author, status } = query;
  const own = isOwnProductList(caller, query);
  if (status !== undefined && !own)
    throw invalidRequest("status", "is only for your own products: add author=me");
  if (!own) where.add(PUBLISHED);
  else if (status) where.add("l.status = $", status);
  else where.add("l.status <> 'deleted'");
  if (author !== undefined) where.add("l.author_id = $", authorIdOf(caller, author));
}

/** The currency of the query's prices. */
export function currencyOf(ctx: Context, query: Filters): string {
  const currency = query.currency ?? ctx.config.currency;
  if (!isCurrency(currency)) throw invalidRequest("currency", "is not an ISO 4217 code");
  return currency;
}

/** Prices of several currencies have no common order. */
export const isInOneCurrency = (query: SortedFilters): boolean =>
  query.currency !== undefined || usesPrice(query);

/** The name of the rows in `product_scores` that a list shows and sorts by; '' has the best model of each product. */
export const scoreNameOf = ({ testedOn }: Filters): string => testedOn?.toLowerCase() ?? "";

export const usesPrice = ({ minPrice, maxPrice, sort }: SortedFilters): boolean =>
  minPrice > 0 || maxPrice !== undefined || sort === "price";

function addPrice(where: Where, ctx: Context, query: SortedFilters): void {
  const currency = currencyOf(ctx, query);
  if (query.maxPrice !== undefined && query.minPrice > query.maxPrice) {
    throw invalidRequest("minPrice", "must not be greater than maxPrice");
  }
  if (isInOneCurrency(query)) where.add("l.currency = $", currency);
  if (query.minPrice > 0) where.add("l.price_minor >= $::bigint", priceBound(query, "minPrice", currency));
  if (query.maxPrice !== undefined) {
    where.add("l.price_minor <= $::bigint", priceBound(query, "maxPrice", currency));
  }
}

/** The conditions on prices alone. */
export function priceConditions(ctx: Context, query: SortedFilters): Where {
  const where = new Where();
  addPrice(where, ctx, query);
  return where;
}

function addScore(where: Where, query: Filters): void {
  const { testedOn, minPassRate = 0 } = query;
  if (testedOn !== undefined) {
    const scores = "select s.product_id from product_scores s where s.name = $ and s.low >= $";
    where.add(`l.product_id in (${scores})`, scoreNameOf(query), minPassRate);
  } else if (query.minPassRate !== undefined) where.add("l.low >= $", minPassRate);
}

/** The conditions on `listings l` without the searched words. */
export async function listConditions(ctx: Context, caller: Caller, query: SortedFilters): Promise<Where> {
  const where = new Where();
  addAuthor(where, caller, query);
  addPrice(where, ctx, query);
  if (query.type) where.add("l.type = $", query.type);
  if (query.category) {
    // One column per level: a single value uses the order of an index, a list of values does not.
    where.add(`l.${await categoryColumn(ctx, query.category)} = $`, query.category);
  }
  if (query.provider) where.add("l.compatibility @> array[$]::text[]", query.provider);
  if (query.tag) where.add("l.tags @> array[$]::text[]", query.tag.toLowerCase());
  if (query.lang) where.add("l.lang = $", query.lang);
  if (query.minRating) where.add("l.rating_mean >= $", query.minRating);
  addScore(where, query);
  return where;
}
