import type { api, Input } from "@stoa/contract";
import { type Caller, type Context, type Guest, isMember } from "../context.ts";
import { invalidRequest } from "../errors.ts";
import { toUuid } from "../ids.ts";
import { isCurrency, toMinor } from "../money/amount.ts";
import { withBelow } from "./categories.ts";

export type ListQuery = Input<typeof api.products.list>["query"];

/** Conditions with their values: `$` stands for the value that comes with it. */
export class Where {
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

function priceBound(query: ListQuery, field: "minPrice" | "maxPrice", currency: string): number {
  const minor = toMinor(query[field]!, currency);
  if (minor === null) throw invalidRequest(field, `is no amount of ${currency}`);
  return minor;
}

/** Asks what everybody may see. */
export const ANYBODY: Guest = { kind: "guest", guestId: "" };

const authorOf = (caller: Caller, author: string) =>
  author === "me" ? (isMember(caller) ? caller.userId : null) : toUuid("usr", author);

/** Whether this is the caller's own shelf, which shows them more than it shows to others. */
export const isOwnShelf = (caller: Caller, { author }: ListQuery): boolean =>
  author !== undefined && isMember(caller) && authorOf(caller, author) === caller.userId;

/** The caller's own shelf shows every state; everybody else's shows what is for sale. */
function addAuthor(where: Where, caller: Caller, query: ListQuery): void {
  const { author, status } = query;
  const own = isOwnShelf(caller, query);
  if (status !== undefined && !own)
    throw invalidRequest("status", "is only for your own products: add author=me");
  if (!own) where.add("l.status = 'published'");
  else if (status) where.add("l.status = $", status);
  if (author !== undefined) where.add("l.author_id = $", authorOf(caller, author));
}

function addPrice(where: Where, ctx: Context, query: ListQuery): void {
  const currency = query.currency ?? ctx.config.currency;
  if (!isCurrency(currency)) throw invalidRequest("currency", "is no ISO 4217 code");
  if (query.maxPrice !== undefined && query.minPrice > query.maxPrice) {
    throw invalidRequest("minPrice", "must not be greater than maxPrice");
  }
  const byPrice = query.minPrice > 0 || query.maxPrice !== undefined || query.sort === "price";
  if (byPrice || query.currency) where.add("l.currency = $", currency);
  if (query.minPrice > 0) where.add("l.price_minor >= $::bigint", priceBound(query, "minPrice", currency));
  if (query.maxPrice !== undefined) {
    where.add("l.price_minor <= $::bigint", priceBound(query, "maxPrice", currency));
  }
}

/** What a list asks of `listings l`, all but the words that are searched for. */
export async function whereOf(ctx: Context, caller: Caller, query: ListQuery): Promise<Where> {
  const where = new Where();
  addAuthor(where, caller, query);
  addPrice(where, ctx, query);
  if (query.type) where.add("l.type = $", query.type);
  if (query.category) {
    const slugs = await withBelow(ctx, query.category);
    // One value has an order within the index, a list of them has none.
    if (slugs.length === 1) where.add("l.category = $", slugs[0]);
    else where.add("l.category = any($)", slugs);
  }
  if (query.provider) where.add("l.compatibility @> array[$]::text[]", query.provider);
  if (query.tag) where.add("l.tags @> array[$]::text[]", query.tag.toLowerCase());
  if (query.lang) where.add("l.lang = $", query.lang);
  if (query.minRating) where.add("l.rating_mean >= $", query.minRating);
  return where;
}
