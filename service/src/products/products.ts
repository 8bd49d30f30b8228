import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { ChangeProduct, CreateProduct, Variable } from "@stoa/contract";
import { renderCard } from "../catalogue/card.ts";
import { isCategory } from "../catalogue/categories.ts";
import { relist } from "../catalogue/listing.ts";
import type { Context, Member } from "../context.ts";
import type { Tx } from "../db/database.ts";
import { invalidRequest, ruleBroken } from "../errors.ts";
import { announce } from "../events/outbox.ts";
import { mustMatch } from "../http/conditional.ts";
import type { RequestFacts } from "../http/route.ts";
import { toId } from "../ids.ts";
import { toDecimal, toMinor } from "../money/amount.ts";
import { becomeSeller } from "../people/users.ts";
import { mustStayComplete } from "./checklist.ts";
import { inputsOf } from "./content.ts";
import { tagFor } from "./detail.ts";
import { changersView, type Locked, lockToChange, mustMayChange, recordIfAnothers } from "./ownership.ts";
import {
  insertProduct,
  insertVersion,
  type ProductValues,
  replaceVersion,
  updateProduct,
} from "./queries.ts";
import { isAfter, nextMinor } from "./version.ts";

const MAX_PRICE_MINOR = 99_999_999;

function priceOf(price: number, currency: string): number {
  const minor = toMinor(price, currency);
  if (minor === null) throw invalidRequest("price", `has more decimals than ${currency}`);
  if (minor > MAX_PRICE_MINOR) {
    throw invalidRequest("price", `must be at most ${toDecimal(MAX_PRICE_MINOR, currency)} ${currency}`);
  }
  return minor;
}

function currencyOf(ctx: Context, currency: string | undefined): string {
  const chosen = currency ?? ctx.config.currency;
  if (ctx.config.currencies.includes(chosen)) return chosen;
  throw invalidRequest("currency", `must be one of ${ctx.config.currencies.join(", ")}`);
}

async function mustBeCategory(ctx: Context, slug: string | undefined | null): Promise<void> {
  if (slug && !(await isCategory(ctx, slug))) {
    throw invalidRequest("category", "is not a slug of GET /categories");
  }
}

/** Makes a draft. The first one makes its author a seller. */
export async function createProduct(ctx: Context, caller: Member, wish: CreateProduct) {
  const currency = currencyOf(ctx, wish.currency);
  const priceMinor = priceOf(wish.price, currency);
  const variables = inputsOf(wish, wish.variables);
  await mustBeCategory(ctx, wish.category);
  const id = ctx.newId();
  const now = ctx.now();
  const values = {
    ...pick(wish),
    category: wish.category ?? null,
    price_minor: priceMinor,
    currency,
    models: JSON.stringify(wish.models),
    preview: wish.preview ?? "",
    version: wish.version,
  };
  await ctx.db.transaction().execute(async (tx) => {
    const author = await becomeSeller(tx, caller.userId);
    const listed = {
      ...wish,
      id,
      authorId: caller.userId,
      authorName: author.name,
      authorVerified: author.verified,
      category: wish.category ?? null,
      priceMinor,
      currency,
      status: "draft" as const,
      createdAt: now,
      updatedAt: now,
      publishedAt: null,
    };
    const product = {
      ...values,
      card: renderCard(listed),
      id,
      author_id: caller.userId,
      type: wish.type,
      created_at: now,
    };
    await insertProduct(tx, product);
    await insertVersion(tx, id, { ...wish, variables }, now);
    await relist(tx, listed);
  });
  return {
    id: toId("prod", id),
    status: "draft" as const,
    message: "The draft is saved. Publish it to offer it for sale.",
  };
}

const pick = (
  wish: Pick<
    Locked,
    "title" | "description" | "lang" | "compatibility" | "tags" | "requirements" | "features"
  >,
) => ({
  title: wish.title,
  description: wish.description,
  lang: wish.lang,
  compatibility: wish.compatibility,
  tags: wish.tags,
  requirements: wish.requirements,
  features: wish.features,
});

const AUTHORS_FIELDS = [
  ...[
    "title",
    "description",
    "lang",
    "category",
    "priceMinor",
    "currency",
    "compatibility",
    "tags",
    "requirements",
  ],
  ...["features", "models", "preview", "content", "contentFormat", "variables", "version", "changelog"],
] as const as readonly (keyof Locked)[];
const VERSIONED_FIELDS: readonly (keyof Locked)[] = ["content", "contentFormat", "variables"];

const changedFields = (before: Locked, after: Locked) =>
  AUTHORS_FIELDS.filter((field) => !isDeepStrictEqual(before[field], after[field]));

/** The product as the change would leave it, before a version is given to it. */
function applied(ctx: Context, product: Locked, change: ChangeProduct): Locked {
  const { price, ...rest } = withoutUndefined(change);
  const currency = change.currency ? currencyOf(ctx, change.currency) : product.currency;
  const after = { ...product, ...rest, currency } as Locked;
  after.priceMinor = priceOf(price ?? toDecimal(product.priceMinor, product.currency), currency);
  const touchesContent = change.content !== undefined || change.contentFormat !== undefined;
  if (touchesContent || change.variables) after.variables = inputsOf(after, declaredAfter(product, change));
  return after;
}

const withoutUndefined = (change: ChangeProduct) =>
  Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)) as ChangeProduct;

/** Variables that its author described are kept over a change of content; derived ones are derived anew. */
function declaredAfter(product: Locked, change: ChangeProduct): Variable[] | undefined {
  if (change.variables) return change.variables;
  const derived = inputsOf(product, undefined);
  return isDeepStrictEqual(derived, product.variables) ? undefined : product.variables;
}

/** Once published a version is immutable: a change of what buyers run makes the next one. */
function versioned(before: Locked, after: Locked, change: ChangeProduct): Locked {
  if (!before.firstPublishedAt) return after;
  const newContent = VERSIONED_FIELDS.some((field) => !isDeepStrictEqual(before[field], after[field]));
  if (!newContent && (change.version ?? before.version) === before.version) {
    if ((change.changelog ?? before.changelog) === before.changelog) return after;
    throw ruleBroken("changelog", "belongs to a new version: send content or version with it");
  }
  const version = change.version ?? nextMinor(before.version);
  if (!isAfter(version, before.version))
    throw ruleBroken("version", `must be greater than ${before.version}`);
  return { ...after, version, changelog: change.changelog ?? "" };
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

/** An event may have 256 KiB, and tells the old value beside the new one. */
const MAX_TOLD_CHARACTERS = 8_000;

/** `{field: {old, new}}` under the API's names; of content, and of what is long, only the SHA-256. */
function changesOf(before: Locked, after: Locked, fields: readonly (keyof Locked)[]) {
  const shown = (product: Locked, field: keyof Locked) => {
    if (field === "priceMinor") return toDecimal(product.priceMinor, product.currency);
    if (field === "content") return `sha256:${sha256(product.content)}`;
    const text = JSON.stringify(product[field]);
    return text.length > MAX_TOLD_CHARACTERS ? `sha256:${sha256(text)}` : product[field];
  };
  return Object.fromEntries(
    fields.map((field) => [
      field === "priceMinor" ? "price" : field,
      { old: shown(before, field), new: shown(after, field) },
    ]),
  );
}

async function writeChange(tx: Tx, before: Locked, after: Locked, now: Date): Promise<void> {
  const updated = { ...after, updatedAt: now };
  const values: ProductValues = {
    ...pick(after),
    category: after.category,
    price_minor: after.priceMinor,
    currency: after.currency,
    models: JSON.stringify(after.models),
    preview: after.preview,
    version: after.version,
    card: renderCard(updated),
  };
  if (!before.firstPublishedAt) await replaceVersion(tx, before.id, before.version, after, now);
  else if (after.version !== before.version) await insertVersion(tx, before.id, after, now);
  await updateProduct(tx, before.id, values, now);
  await relist(tx, updated);
}

/** Changes what is sent, and nothing when nothing differs: then there is no event and `updatedAt` stays. */
export async function changeProduct(
  ctx: Context,
  caller: Member,
  productId: string,
  change: ChangeProduct,
  { ifMatch, source }: Pick<RequestFacts, "ifMatch" | "source">,
) {
  await mustBeCategory(ctx, change.category);
  const seen = await mustMayChange(ctx, caller, productId);
  await ctx.db.transaction().execute(async (tx) => {
    const before = await lockToChange(tx, seen.id);
    mustMatch(ifMatch, tagFor({ ...seen, revision: before.revision }, caller));
    if (change.currency && change.currency !== before.currency && before.firstPublishedAt) {
      throw ruleBroken("currency", "is fixed once the product has been published");
    }
    const after = versioned(before, applied(ctx, before, change), change);
    const fields = changedFields(before, after);
    if (fields.length === 0) return;
    mustStayComplete(after);
    await writeChange(tx, before, after, ctx.now());
    const changes = changesOf(before, after, fields);
    await announce(ctx, tx, [before.authorId], "product.updated", {
      product: { id: toId("prod", before.id), changes },
    });
    const deed = { action: "product.updated", source, details: { changes } };
    await recordIfAnothers(ctx, tx, caller, before, deed);
  });
  return changersView(ctx, caller, seen.id);
}
