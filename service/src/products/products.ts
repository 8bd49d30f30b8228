import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { ChangeProduct, CreateProduct, Variable } from "@stoa/contract";
import type { Context, Member } from "../context.ts";
import type { Tx } from "../db/database.ts";
import { ApiError, type FieldProblem, fieldError, invalidRequest, ruleBroken } from "../errors.ts";
import { announce } from "../events/outbox.ts";
import { Answer } from "../http/route.ts";
import { toId, toUuid } from "../ids.ts";
import { toDecimal, toMinor } from "../money/amount.ts";
import { becomeSeller, findUser, toUserId } from "../people/users.ts";
import { renderCard } from "./card.ts";
import { inputsOf } from "./content.ts";
import { detailFor, isVisible } from "./detail.ts";
import {
  bumpCatalogue,
  findProductForReader,
  insertProduct,
  insertVersion,
  isCategory,
  lockProduct,
  type ProductRow,
  type ProductValues,
  replaceVersion,
  setStatus,
  updateProduct,
  type VersionRow,
} from "./queries.ts";
import { isAfter, nextMinor } from "./version.ts";

type Locked = ProductRow & VersionRow;
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
  if (slug && !(await isCategory(ctx.db, slug))) {
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
  const author = await findUser(ctx, toUserId(caller.userId));
  const values: ProductValues = {
    ...pick(wish),
    category: wish.category ?? null,
    price_minor: priceMinor,
    currency,
    models: JSON.stringify(wish.models),
    preview: wish.preview ?? "",
    version: wish.version,
    card: renderCard({
      ...wish,
      id,
      authorId: caller.userId,
      authorName: author.name,
      authorVerified: author.verified,
      category: wish.category ?? null,
      priceMinor,
      currency,
      status: "draft",
      createdAt: now,
      updatedAt: now,
      publishedAt: null,
      firstPublishedAt: null,
    }),
  };
  await ctx.db.transaction().execute(async (tx) => {
    await insertProduct(tx, { ...values, id, author_id: caller.userId, type: wish.type, created_at: now });
    await insertVersion(tx, id, { ...wish, variables }, now);
    await becomeSeller(tx, caller.userId);
  });
  return {
    id: toId("prod", id),
    status: "draft" as const,
    message: "The draft is saved. Publish it to offer it for sale.",
  };
}

const pick = (
  wish: Pick<Locked, "title" | "description" | "compatibility" | "tags" | "requirements" | "features">,
) => ({
  title: wish.title,
  description: wish.description,
  compatibility: wish.compatibility,
  tags: wish.tags,
  requirements: wish.requirements,
  features: wish.features,
});

/** What the caller cannot see is 404, what is another's is 403. Answers the product's uuid. */
async function mustBeAuthor(ctx: Context, caller: Member, productId: string): Promise<string> {
  const id = toUuid("prod", productId);
  const seen = id ? await findProductForReader(ctx, id, caller.userId) : undefined;
  if (!seen || !isVisible(seen, caller)) throw new ApiError("PRODUCT_NOT_FOUND");
  if (seen.authorId === caller.userId) return seen.id;
  throw new ApiError("UNAUTHORIZED", "Only its author may change this product.", { required: "author" });
}

/**
 * Locks a product of which mustBeAuthor() was asked. It is asked before the transaction begins: asking takes a
 * connection, and whoever waits for a second one while holding the first can bring the whole pool to a stand.
 */
async function lockOwn(tx: Tx, id: string): Promise<Locked> {
  const product = await lockProduct(tx, id);
  if (!product || product.status === "deleted") throw new ApiError("PRODUCT_NOT_FOUND");
  return product;
}

const AUTHORS_FIELDS = [
  ...["title", "description", "category", "priceMinor", "currency", "compatibility", "tags", "requirements"],
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
}

/** Changes what is sent, and nothing when nothing differs: then there is no event and `updatedAt` stays. */
export async function changeProduct(
  ctx: Context,
  caller: Member,
  productId: string,
  change: ChangeProduct,
  ifMatch: string | null,
) {
  await mustBeCategory(ctx, change.category);
  const id = await mustBeAuthor(ctx, caller, productId);
  await ctx.db.transaction().execute(async (tx) => {
    const before = await lockOwn(tx, id);
    mustMatch(ifMatch, before);
    if (change.currency && change.currency !== before.currency && before.firstPublishedAt) {
      throw ruleBroken("currency", "is fixed once the product has been published");
    }
    const after = versioned(before, applied(ctx, before, change), change);
    const fields = changedFields(before, after);
    if (fields.length === 0) return;
    mustStayComplete(after);
    await writeChange(tx, before, after, ctx.now());
    if (before.status === "published") await bumpCatalogue(tx);
    const product = { id: toId("prod", before.id), changes: changesOf(before, after, fields) };
    await announce(ctx, tx, [before.authorId], "product.updated", { product });
  });
  return authorsView(ctx, caller, productId);
}

function mustMatch(ifMatch: string | null, product: Locked): void {
  if (ifMatch === null || ifMatch.trim() === "*") return;
  const tags = ifMatch.split(",").map((tag) => tag.trim());
  if (!tags.includes(authorsTag(product))) throw new ApiError("PRECONDITION_FAILED");
}

/** What an author can change is all that its author's ETag depends on. */
const authorsTag = (product: Pick<Locked, "revision">) => `"${product.revision}-author"`;

async function authorsView(ctx: Context, caller: Member, productId: string) {
  const row = await findProductForReader(ctx, toUuid("prod", productId)!, caller.userId);
  if (!row) throw new ApiError("PRODUCT_NOT_FOUND");
  return new Answer(detailFor(row, caller), { etag: authorsTag(row) });
}

/** Everything that a buyer needs and that is missing. */
function missingForSale(product: Locked): FieldProblem[] {
  const missing: FieldProblem[] = [];
  const need = (ok: boolean, field: string, reason: string) => ok || missing.push({ field, reason });
  need(product.type !== "WORKFLOW", "type", "workflows can be drafted but not sold yet");
  need(product.title !== "", "title", "is missing");
  need(product.description !== "", "description", "is missing: say what a buyer gets");
  need(product.category !== null, "category", "is missing");
  need(product.content.trim() !== "", "content", "is empty");
  need(product.compatibility.length > 0, "compatibility", "needs at least one provider");
  return missing;
}

function mustBeComplete(product: Locked): void {
  const missing = missingForSale(product);
  if (missing.length > 0) throw fieldError("VALIDATION_ERROR", missing);
}

/** What is on sale may not lose what the checklist asks for. */
function mustStayComplete(product: Locked): void {
  if (product.status === "published") mustBeComplete(product);
}

function mustBeIn(product: Locked, allowed: string[]): void {
  if (allowed.includes(product.status)) return;
  throw new ApiError(
    "INVALID_STATE",
    `The product is ${product.status}; this needs ${allowed.join(" or ")}.`,
    {
      current: product.status,
      allowed,
    },
  );
}

async function moveTo(ctx: Context, tx: Tx, product: Locked, status: Locked["status"]): Promise<void> {
  const now = ctx.now();
  const publishedAt = status === "published" ? now : product.publishedAt;
  const card = renderCard({ ...product, status, updatedAt: now, publishedAt });
  await setStatus(tx, product.id, { status, card }, now);
  await bumpCatalogue(tx);
}

export async function publishProduct(ctx: Context, caller: Member, productId: string) {
  const id = await mustBeAuthor(ctx, caller, productId);
  await ctx.db.transaction().execute(async (tx) => {
    const product = await lockOwn(tx, id);
    mustBeIn(product, ["draft", "rejected", "unpublished"]);
    mustBeComplete(product);
    await moveTo(ctx, tx, product, "published");
    await announce(ctx, tx, [product.authorId], "product.published", {
      product: {
        id: toId("prod", product.id),
        title: product.title,
        type: product.type,
        price: toDecimal(product.priceMinor, product.currency),
        authorId: toUserId(product.authorId),
      },
    });
  });
  return authorsView(ctx, caller, productId);
}

const announceUnpublished = (ctx: Context, tx: Tx, product: Locked, reason: "unpublished" | "deleted") =>
  announce(ctx, tx, [product.authorId], "product.unpublished", {
    product: {
      id: toId("prod", product.id),
      title: product.title,
      type: product.type,
      authorId: toUserId(product.authorId),
      reason,
      unpublishedAt: ctx.now().toISOString(),
    },
  });

export async function unpublishProduct(ctx: Context, caller: Member, productId: string) {
  const id = await mustBeAuthor(ctx, caller, productId);
  await ctx.db.transaction().execute(async (tx) => {
    const product = await lockOwn(tx, id);
    mustBeIn(product, ["published"]);
    await moveTo(ctx, tx, product, "unpublished");
    await announceUnpublished(ctx, tx, product, "unpublished");
  });
  return authorsView(ctx, caller, productId);
}

/** Soft: buyers keep what they bought, everybody else finds nothing here any more. */
export async function deleteProduct(ctx: Context, caller: Member, productId: string) {
  const id = await mustBeAuthor(ctx, caller, productId);
  return ctx.db.transaction().execute(async (tx) => {
    const product = await lockOwn(tx, id);
    await moveTo(ctx, tx, product, "deleted");
    if (product.firstPublishedAt) await announceUnpublished(ctx, tx, product, "deleted");
    return {
      id: toId("prod", product.id),
      status: "deleted" as const,
      deletedAt: ctx.now().toISOString(),
      message: "The product is removed from the marketplace. Buyers keep access.",
    };
  });
}
