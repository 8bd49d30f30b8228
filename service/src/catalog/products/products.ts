import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import {
  type CreateProduct,
  productStatuses,
  SEMANTIC_VERSION,
  type UpdateProduct,
  type Variable,
} from "@stoa/contract";
import { lockAuthor, promoteToSeller } from "../../accounts/people/users.ts";
import type { Context, Member, RequestSource } from "../../core/context.ts";
import { ApiError, checkAll, invalidRequest, ruleViolation } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { toDecimal, toMinor } from "../../core/money/amount.ts";
import { mustBeChargeable } from "../../core/money/chargeable.ts";
import { firstOf, required } from "../../core/required.ts";
import { publishEvent } from "../../events/outbox/outbox.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { inPipelinedTransaction, sendInOrder } from "../../platform/db/pipeline.ts";
import { isAdmin } from "../../platform/http/authenticate.ts";
import { DataResponse, type RequestInfo } from "../../platform/http/route.ts";
import { type Author, type CardFields, renderCard, toAuthorFields } from "../search/card.ts";
import { isCategory } from "../search/categories.ts";
import { insertListings, updateListings } from "../search/listing.ts";
import { renderApproval } from "./approved-details.ts";
import { mustAcceptOldInputs } from "./breaking-changes.ts";
import { mustStayComplete } from "./checklist.ts";
import { analyzeContent, declaredVariables } from "./content.ts";
import { contentWarnings } from "./content-warnings.ts";
import { requestCopyChecks } from "./copy-reports.ts";
import { checkIfMatch } from "./detail.ts";
import { isModerated } from "./lifecycle.ts";
import {
  auditAdminChange,
  authorizeChange,
  detailAfterChange,
  type LockedProduct,
  lockProductForChange,
} from "./ownership.ts";
import {
  lastFindings,
  mustHaveNoSecret,
  reportFindings,
  type ScanChange,
  scanProduct,
  scanWarnings,
  storeScans,
} from "./product-scans.ts";
import {
  insertDraftRows,
  insertVersion,
  type NewDraft,
  type ProductValues,
  replaceVersion,
  updateProduct,
} from "./queries.ts";
import { mustFitType, resolveSamples, type StoredSample, toSample } from "./samples.ts";
import { SCANNED_FIELDS, SCANNED_STATUSES } from "./scanned-texts.ts";
import { flagNewReleases, mustAcknowledgeRegression } from "./score-card.ts";
import { isNewerVersion, nextMinorVersion, parseVersion } from "./semantic-version.ts";
import { requestVersionNotifications } from "./version-notifications.ts";

const MAX_PRICE_MINOR = 99_999_999;

function priceOf(ctx: Context, price: number, currency: string): number {
  const minor = toMinor(price, currency);
  if (minor === null) throw invalidRequest("price", `has more decimals than ${currency}`);
  if (minor > MAX_PRICE_MINOR) {
    throw invalidRequest("price", `must be at most ${toDecimal(MAX_PRICE_MINOR, currency)} ${currency}`);
  }
  mustBeChargeable(ctx.integrations.payments, minor, currency, (why) => invalidRequest("price", why));
  return Number(minor);
}

function currencyOf(ctx: Context, currency: string | undefined): string {
  const chosen = currency ?? ctx.config.currency;
  if (ctx.config.currencies.includes(chosen)) return chosen;
  throw invalidRequest("currency", `must be one of ${ctx.config.currencies.join(", ")}`);
}

function moneyOf(ctx: Context, input: Pick<CreateProduct, "price" | "currency">) {
  const currency = currencyOf(ctx, input.currency);
  return { currency, priceMinor: priceOf(ctx, input.price, currency) };
}

async function mustBeCategory(db: Queries, slug: string | undefined | null): Promise<void> {
  if (slug && !(await isCategory(db, slug))) {
    throw invalidRequest("category", "is not a slug of GET /categories");
  }
}

/** A product to create: the author's fields and the derived ones. */
export interface Draft extends Omit<CreateProduct, "samples"> {
  priceMinor: number;
  currency: string;
  variables: Variable[];
  samples: StoredSample[];
}

/** Checks everything but the category, which needs the database. */
export async function validateDraft(
  ctx: Context,
  input: CreateProduct,
  { isImport }: { isImport: boolean } = { isImport: false },
): Promise<Draft> {
  const target = { type: input.type, isImport, stored: [], runsOf: null };
  const [money, { variables, providers }, samples] = await checkAll(
    () => moneyOf(ctx, input),
    () => analyzeContent(input, input.variables),
    () => resolveSamples(ctx, ctx.db, input.samples, target),
  );
  const compatibility = input.compatibility.length > 0 ? input.compatibility : providers;
  return { ...input, ...money, compatibility, variables, samples };
}

/** Creates a draft. The first product makes its author a seller. */
export async function createProduct(ctx: Context, caller: Member, input: CreateProduct) {
  const draft = await validateDraft(ctx, input);
  const id = await inPipelinedTransaction(
    ctx.pool,
    (tx) => sendInOrder(tx, [() => lockAuthor(tx, caller.userId), () => mustBeCategory(tx, input.category)]),
    async (tx, [author]) => {
      const [, ids] = await sendInOrder(tx, [
        () => promoteToSeller(tx, author),
        () => insertDrafts(ctx, tx, author, [draft]),
      ]);
      const draftId = firstOf(ids);
      await ctx.idempotencyKey?.bind(tx, toId("prod", draftId));
      return draftId;
    },
  );
  return toDraftResponse(toId("prod", id), input);
}

export const toDraftResponse = (id: string, input: CreateProduct) => ({
  id,
  status: "draft" as const,
  message: "The draft is saved. Publish it to offer it for sale.",
  warnings: [
    ...contentWarnings(input),
    ...scanWarnings({
      ...input,
      preview: input.preview ?? "",
      variables: input.variables ?? [],
      changelog: input.changelog ?? "",
      files: [],
    }),
  ],
});

/** Returns the uuids of the new products, in their order. */
export async function insertDrafts(ctx: Context, tx: Tx, author: Author, drafts: Draft[]): Promise<string[]> {
  const now = ctx.now();
  const products = drafts.map((draft) => toNewProduct(ctx.newId(), author, draft, now));
  await sendInOrder(tx, [
    () => insertDraftRows(tx, products.map(toDraftRow)),
    () => insertListings(tx, products),
  ]);
  return products.map(({ id }) => id);
}

const toNewProduct = (id: string, author: Author, draft: Draft, now: Date) => ({
  ...draft,
  id,
  ...toAuthorFields(author),
  authorBannedAt: null,
  category: draft.category ?? null,
  preview: draft.preview ?? "",
  files: [],
  images: [],
  acknowledgesRegression: false,
  status: "draft" as const,
  createdAt: now,
  updatedAt: now,
  publishedAt: null,
  released: null,
});

const toDraftRow = (product: ReturnType<typeof toNewProduct>): NewDraft => ({
  ...toProductValues(product),
  id: product.id,
  authorId: product.authorId,
  samples: product.samples,
  models: product.models,
  images: product.images,
  content: product.content,
  contentFormat: product.contentFormat,
  variables: product.variables,
  changelog: product.changelog ?? "",
  acknowledgesRegression: product.acknowledgesRegression,
  files: product.files,
  createdAt: product.createdAt,
});

type ProductFields = CardFields &
  Pick<
    LockedProduct,
    | "requirements"
    | "features"
    | "license"
    | "samples"
    | "models"
    | "preview"
    | "version"
    | "released"
    | "commissionBasisPoints"
  >;

/** The columns that change without a move. */
const toProductValues = (product: ProductFields): ProductValues => ({
  title: product.title,
  description: product.description,
  lang: product.lang,
  type: product.type,
  category: product.category,
  priceMinor: product.priceMinor,
  currency: product.currency,
  commissionBasisPoints: product.commissionBasisPoints,
  compatibility: product.compatibility,
  tags: product.tags,
  requirements: product.requirements,
  features: product.features,
  license: product.license,
  samples: JSON.stringify(product.samples),
  models: JSON.stringify(product.models),
  preview: product.preview,
  images: JSON.stringify(product.images),
  version: product.version,
  released: product.released,
  card: renderCard(product),
});

/** In the order of the events' `changes`. */
const AUTHOR_FIELDS: readonly (keyof LockedProduct)[] = [
  "title",
  "description",
  "lang",
  "type",
  "category",
  "priceMinor",
  "currency",
  "compatibility",
  "commissionBasisPoints",
  "tags",
  "requirements",
  "features",
  "license",
  "samples",
  "models",
  "preview",
  "content",
  "contentFormat",
  "variables",
  "files",
  "images",
  "version",
  "changelog",
  "acknowledgesRegression",
];
const VERSIONED_FIELDS: readonly (keyof LockedProduct)[] = ["content", "contentFormat", "variables", "files"];

const changedFields = (before: LockedProduct, after: LockedProduct) =>
  AUTHOR_FIELDS.filter((field) => !isDeepStrictEqual(before[field], after[field]));

export interface ChangeSource {
  by: "author" | "admin";
  /** Only the author may publish runs as samples: they are the author's own. */
  isAuthor: boolean;
  isImport: boolean;
}

/** The product after the change, before it gets a version. */
async function mergeChange(
  ctx: Context,
  db: Queries,
  product: LockedProduct,
  { samples, ...change }: UpdateProduct,
  { isAuthor, isImport }: ChangeSource,
): Promise<LockedProduct> {
  const { price, ...rest } = withoutUndefined(change);
  const currency = change.currency ? currencyOf(ctx, change.currency) : product.currency;
  const after = { ...product, ...rest, currency } as LockedProduct;
  if (price !== undefined || currency !== product.currency)
    after.priceMinor = priceOf(ctx, price ?? toDecimal(product.priceMinor, product.currency), currency);
  const isOfAnotherType = after.type !== product.type;
  if (samples) {
    const runsOf = isAuthor ? product : null;
    const target = { type: after.type, stored: product.samples, runsOf, isImport };
    after.samples = await resolveSamples(ctx, db, samples, target);
  } else if (isOfAnotherType) mustFitType(after.samples, after.type);
  const touchesContent =
    change.content !== undefined || change.contentFormat !== undefined || isOfAnotherType;
  if (touchesContent || change.variables) {
    // Declared variables stay when the content changes. Derived ones are derived again; a new type derives all.
    const declared = change.variables ?? (isOfAnotherType ? undefined : await declaredVariables(product));
    after.variables = (await analyzeContent(after, declared)).variables;
  }
  return after;
}

const withoutUndefined = <T extends object>(change: T) =>
  Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)) as T;

/** A published version is immutable: a change of its content makes the next version. */
function assignVersion(
  before: LockedProduct,
  after: LockedProduct,
  change: Pick<UpdateProduct, "version" | "changelog" | "acknowledgesRegression">,
): LockedProduct {
  if (!before.firstPublishedAt) return after;
  const newContent = VERSIONED_FIELDS.some((field) => !isDeepStrictEqual(before[field], after[field]));
  const { acknowledgesRegression = false } = change;
  if (!newContent && (change.version ?? before.version) === before.version) {
    if (acknowledgesRegression && !before.acknowledgesRegression)
      throw ruleViolation(
        "acknowledgesRegression",
        "belongs to a new version: send content or version with it",
      );
    if ((change.changelog ?? before.changelog) === before.changelog)
      return { ...after, acknowledgesRegression: before.acknowledgesRegression };
    throw ruleViolation("changelog", "belongs to a new version: send content or version with it");
  }
  const version = change.version ?? nextMinorVersion(before.version);
  if (!isNewerVersion(version, before.version))
    throw ruleViolation("version", `must be greater than ${before.version}`);
  if (!SEMANTIC_VERSION.test(version))
    throw ruleViolation("version", `is required: there is no minor version after ${before.version}`);
  const changelog = change.changelog ?? "";
  if (acknowledgesRegression && changelog.trim() === "")
    throw ruleViolation(
      "changelog",
      "is required with acknowledgesRegression: tell buyers what the version does worse, and why",
    );
  return { ...after, version, changelog, acknowledgesRegression };
}

/** Moderators do not check the terms of a sale. */
const SALE_TERMS: readonly (keyof LockedProduct)[] = ["priceMinor", "commissionBasisPoints"];

/** An approved product cannot change without a new review, except for its terms of sale. */
function mustNotNeedModeration(
  ctx: Context,
  before: LockedProduct,
  fields: readonly (keyof LockedProduct)[],
): void {
  if (before.status !== "published" || !isModerated(ctx, before)) return;
  if (fields.every((field) => SALE_TERMS.includes(field))) return;
  throw new ApiError(
    "INVALID_STATE",
    "Moderators approved the product in its present form. Unpublish it, change it and publish it again for a new review.",
    { current: before.status, allowed: productStatuses.filter((status) => !NOT_CHANGEABLE.has(status)) },
  );
}

const NOT_CHANGEABLE = new Set(["published", "deleted"]);

/** Buyers get a new version at once, under moderation only after approval. */
function releasedVersion(
  ctx: Context,
  before: LockedProduct,
  after: LockedProduct,
): LockedProduct["released"] {
  const isHeld = before.status !== "published" && isModerated(ctx, before);
  return !before.firstPublishedAt || isHeld ? before.released : parseVersion(after.version);
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

/** An event has at most 256 KiB and contains the old and the new value. */
const MAX_EVENT_CHARACTERS = 8_000;

/** `{field: {old, new}}` under the API's names. Contents and long texts are replaced by their SHA-256. */
function changesOf(before: LockedProduct, after: LockedProduct, fields: readonly (keyof LockedProduct)[]) {
  const shown = (product: LockedProduct, field: keyof LockedProduct) => {
    if (field === "priceMinor") return toDecimal(product.priceMinor, product.currency);
    if (field === "files") return product.files.map(({ name, sha256 }) => ({ name, sha256 }));
    if (field === "images") return product.images.map(({ hash, alt }) => ({ hash, alt }));
    if (field === "content") return `sha256:${sha256(product.content)}`;
    const value = field === "samples" ? product.samples.map(toSample) : product[field];
    const text = JSON.stringify(value);
    return text.length > MAX_EVENT_CHARACTERS ? `sha256:${sha256(text)}` : value;
  };
  return Object.fromEntries(
    fields.map((field) => [
      field === "priceMinor" ? "price" : field,
      { old: shown(before, field), new: shown(after, field) },
    ]),
  );
}

async function writeRows(
  ctx: Context,
  tx: Tx,
  { before, after }: Pick<CheckedChange, "before" | "after">,
): Promise<void> {
  const now = ctx.now();
  const updated = { ...after, updatedAt: now };
  if (!before.firstPublishedAt) await replaceVersion(tx, before.id, before.version, after, now);
  else if (after.version !== before.version) await insertVersion(tx, before.id, after, now);
  // Without moderation a change reaches buyers at once, so it counts as approved. Under moderation only an approval does.
  const countsAsApproved = before.firstPublishedAt !== null && !isModerated(ctx, before);
  const approval = countsAsApproved ? renderApproval(after) : {};
  await updateProduct(tx, before.id, { ...toProductValues(updated), ...approval }, now);
  await updateListings(tx, [updated]);
}

/** The product after a change, and the changed fields. */
export interface CheckedChange {
  before: LockedProduct;
  after: LockedProduct;
  fields: readonly (keyof LockedProduct)[];
  /** null: the change needs none. */
  scan: ScanChange | null;
}

/** Checks everything but the category, which needs the database. */
export async function validateChange(
  ctx: Context,
  db: Queries,
  before: LockedProduct,
  change: UpdateProduct,
  source: ChangeSource,
): Promise<CheckedChange> {
  if (change.type && change.type !== before.type && before.firstPublishedAt)
    throw ruleViolation("type", "cannot be changed once the product has been published: create another one");
  if (change.currency && change.currency !== before.currency && before.firstPublishedAt) {
    throw ruleViolation("currency", "is fixed once the product has been published");
  }
  return checkChange(
    ctx,
    db,
    before,
    assignVersion(before, await mergeChange(ctx, db, before, change, source), change),
    source.by,
  );
}

async function checkChange(
  ctx: Context,
  db: Queries,
  before: LockedProduct,
  after: LockedProduct,
  by: "author" | "admin",
): Promise<CheckedChange> {
  const fields = changedFields(before, after);
  if (fields.length > 0) {
    if (by === "author") mustNotNeedModeration(ctx, before, fields);
    await mustStayComplete(db, before, after);
    if (before.firstPublishedAt) mustAcceptOldInputs(before, after);
  }
  const scan = await checkScan(db, after, fields);
  const released = releasedVersion(ctx, before, after);
  if (
    VERSIONED_FIELDS.some((field) => fields.includes(field)) &&
    !isDeepStrictEqual(released, before.released)
  )
    await mustAcknowledgeRegression(
      ctx,
      db,
      { ...after, released: before.released },
      "Send acknowledgesRegression: true and a changelog that tells buyers, or improve the content",
    );
  return { before, after: { ...after, released }, fields, scan };
}

async function checkScan(
  db: Queries,
  after: LockedProduct,
  fields: readonly (keyof LockedProduct)[],
): Promise<ScanChange | null> {
  if (!SCANNED_STATUSES.has(after.status) || !fields.some((field) => SCANNED_FIELDS.has(field))) return null;
  const change = { result: scanProduct(after), before: await lastFindings(db, after.id) };
  mustHaveNoSecret(change.result, change.before);
  return change;
}

/** Returns the changes as the event lists them. */
export async function writeChange(ctx: Context, tx: Tx, { before, after, fields, scan }: CheckedChange) {
  await writeRows(ctx, tx, { before, after });
  if (scan) {
    await storeScans(ctx, tx, [{ product: after, result: scan.result }]);
    if (after.status === "published") await reportFindings(ctx, tx, before.id, scan);
  }
  const changes = changesOf(before, after, fields);
  await publishEvent(ctx, tx, [before.authorId], "product.updated", {
    product: { id: toId("prod", before.id), changes },
  });
  await requestVersionNotifications(ctx, tx, before, after);
  await flagNewReleases(ctx, tx, [{ before, after }]);
  if (after.status === "published" && (fields.includes("title") || fields.includes("content")))
    await requestCopyChecks(ctx, tx, [before.id]);
  return changes;
}

/** Writes nothing when no field differs: no event, and `updatedAt` stays. */
export async function changeProduct(
  ctx: Context,
  caller: Member,
  productId: string,
  change: UpdateProduct,
  { ifMatch, source }: Pick<RequestInfo, "ifMatch" | "source">,
) {
  await mustBeCategory(ctx.db, change.category);
  const seen = await authorizeChange(ctx, caller, productId);
  await ctx.db.transaction().execute(async (tx) => {
    const before = await lockProductForChange(tx, seen.id);
    checkIfMatch(ifMatch, { ...seen, revision: before.revision }, caller);
    const checked = await validateChange(ctx, tx, before, change, {
      by: roleOf(caller),
      isAuthor: caller.userId === before.authorId,
      isImport: false,
    });
    await applyChange(ctx, tx, { caller, source }, checked);
  });
  const { data, etag } = await detailAfterChange(ctx, caller, seen.id);
  const saved = {
    ...data,
    content: data.content ?? "",
    preview: change.preview ?? "",
    files: data.files ?? [],
  };
  const warnings = [...contentWarnings(saved), ...scanWarnings(saved)];
  return new DataResponse({ ...data, warnings }, { etag: required(etag, "the ETag of a product") });
}

/** Changes parts that are no fields, such as files, with the lock, rules, event and audit of a change. Returns the new product. */
export async function changeAttachments(
  ctx: Context,
  { caller, source }: ChangeActor,
  id: string,
  alter: (product: LockedProduct) => Partial<Pick<LockedProduct, "files" | "images" | "changelog">>,
): Promise<LockedProduct> {
  return ctx.db.transaction().execute(async (tx) => {
    const before = await lockProductForChange(tx, id);
    const { changelog, ...altered } = alter(before);
    if (isDeepStrictEqual({ ...before, ...altered }, before)) return before;
    const changed = { ...before, ...altered, changelog: changelog ?? before.changelog };
    const checked = await checkChange(
      ctx,
      tx,
      before,
      assignVersion(before, changed, { changelog }),
      roleOf(caller),
    );
    await applyChange(ctx, tx, { caller, source }, checked);
    return checked.after;
  });
}

interface ChangeActor {
  caller: Member;
  source: RequestSource;
}

/** An author's change may need moderation; an administrator's does not. */
const roleOf = (caller: Member) => (isAdmin(caller) ? "admin" : "author");

async function applyChange(
  ctx: Context,
  tx: Tx,
  { caller, source }: ChangeActor,
  checked: CheckedChange,
): Promise<void> {
  if (checked.fields.length === 0) return;
  const changes = await writeChange(ctx, tx, checked);
  const entry = { action: "product.updated", source, details: { changes } };
  await auditAdminChange(ctx, tx, caller, checked.before, entry);
}
