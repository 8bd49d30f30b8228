import { ImportedProduct, ImportedUpdate, type ProductStatus, type UpdateProduct } from "@stoa/contract";
import { inBatches } from "../../core/batches.ts";
import type { Context } from "../../core/context.ts";
import { invalidRequest } from "../../core/errors.ts";
import { required } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";
import { parse, parseNew } from "../../platform/http/validate.ts";
import { findOwnProducts, type LockedProduct } from "../products/ownership.ts";
import { type CheckedChange, type Draft, validateChange, validateDraft } from "../products/products.ts";
import { isNewerVersion } from "../products/semantic-version.ts";
import { filterKnownCategories } from "../search/categories.ts";
import { fieldLocation, type Item, yieldToEventLoop } from "./import-items.ts";
import { type ImportProblems, WHOLE_PRODUCT } from "./import-problems.ts";
import { findProductsByName } from "./product-names.ts";

interface StepBase {
  item: Item;
  /** The author's own id for it. */
  name: string | undefined;
  /** The status of the line. */
  wanted: ProductStatus | undefined;
}
export interface CreateStep extends StepBase {
  draft: Draft;
}
export interface UpdateStep extends StepBase {
  productId: string;
  line: ImportedUpdate;
  /** After the change, with whether it differs. */
  title: string;
  type: string;
  status: ProductStatus;
  differs: boolean;
}
export type ImportStep = CreateStep | UpdateStep;

/** Small enough that the longest contents together are some megabytes. */
export const BATCH_SIZE = 50;

/** Validates the whole file without writing. Adds everything that is wrong to `problems`. */
export async function buildSteps(
  ctx: Context,
  authorId: string,
  items: Item[],
  problems: ImportProblems,
): Promise<ImportStep[]> {
  const names = items.map(({ value }) => nameIn(value)).filter((name) => name !== undefined);
  const named = await findProductsByName(ctx.db, authorId, names);
  const once = dropDuplicates(items, named, problems);
  const drafts: CreateStep[] = [];
  const changes: UpdateCandidate[] = [];
  for (const item of once) {
    const productId = named.get(nameIn(item.value) ?? "");
    await collectProblems(problems, item, async () => {
      if (productId === undefined) drafts.push(await toCreateStep(ctx, item));
      else changes.push(toUpdateCandidate(item, productId));
    });
    await yieldToEventLoop();
  }
  await checkCategories(ctx, [...drafts, ...changes], problems);
  const changing = await compareUpdates(ctx, authorId, changes, problems);
  const places = new Map(items.map((item, at) => [item, at]));
  const placeOf = ({ item }: { item: Item }) => required(places.get(item), "the place of an item");
  return [...drafts, ...changing].toSorted((a, b) => placeOf(a) - placeOf(b));
}

type UpdateCandidate = Pick<UpdateStep, "item" | "name" | "wanted" | "productId" | "line">;

async function collectProblems(
  problems: ImportProblems,
  item: Item,
  check: () => Promise<void>,
): Promise<void> {
  try {
    await check();
  } catch (error) {
    problems.add(error, fieldLocation(item));
  }
}

/** The id of an unvalidated line. */
function nameIn(value: unknown): string | undefined {
  const id = (value as { id?: unknown } | null)?.id;
  return typeof id === "string" && id.trim() !== "" ? id.trim() : undefined;
}

/** The first line for a product counts; each later one is a problem. */
function dropDuplicates(items: Item[], named: Map<string, string>, problems: ImportProblems): Item[] {
  const first = new Map<string, Item>();
  return items.filter((item) => {
    const name = nameIn(item.value);
    if (name === undefined) return true;
    const key = named.get(name) ?? name;
    const other = first.get(key);
    if (!other) {
      first.set(key, item);
      return true;
    }
    problems.add(
      invalidRequest("id", `is that of ${other.file ?? `line ${other.line}`} too`),
      fieldLocation(item),
    );
    return false;
  });
}

async function toCreateStep(ctx: Context, item: Item): Promise<CreateStep> {
  const { id: name, status: wanted, ...input } = parseNew(ImportedProduct, item.value, WHOLE_PRODUCT);
  return { item, name, wanted, draft: await validateDraft(ctx, input, { isImport: true }) };
}

function toUpdateCandidate(item: Item, productId: string): UpdateCandidate {
  const line = parse(ImportedUpdate, item.value, WHOLE_PRODUCT);
  return { item, name: line.id, wanted: line.status, productId, line };
}

async function checkCategories(
  ctx: Context,
  steps: (CreateStep | UpdateCandidate)[],
  problems: ImportProblems,
): Promise<void> {
  const categoryOf = (step: CreateStep | UpdateCandidate) =>
    ("draft" in step ? step.draft : step.line).category;
  const slugs = steps.map(categoryOf).filter((slug) => slug !== undefined);
  const known = await filterKnownCategories(ctx, [...new Set(slugs)]);
  for (const step of steps) {
    const slug = categoryOf(step);
    if (slug !== undefined && !known.has(slug))
      problems.add(invalidRequest("category", "is not a slug of GET /categories"), fieldLocation(step.item));
  }
}

/** Compares the changes with the current products. */
async function compareUpdates(
  ctx: Context,
  authorId: string,
  changes: UpdateCandidate[],
  problems: ImportProblems,
): Promise<UpdateStep[]> {
  const changing: UpdateStep[] = [];
  for (const some of inBatches(changes, BATCH_SIZE)) {
    const ids = some.map(({ productId }) => productId);
    const products = new Map((await findOwnProducts(ctx.db, authorId, ids)).map((row) => [row.id, row]));
    for (const aimed of some) {
      const before = products.get(aimed.productId);
      if (!before) continue;
      await collectProblems(problems, aimed.item, async () => {
        const { after, fields } = await checkUpdate(ctx, ctx.db, before, aimed.line);
        changing.push({
          ...aimed,
          title: after.title,
          type: after.type,
          status: before.status,
          differs: fields.length > 0,
        });
      });
      await yieldToEventLoop();
    }
  }
  return changing;
}

/** The rules of PATCH apply. */
export async function checkUpdate(
  ctx: Context,
  db: Queries,
  before: LockedProduct,
  line: ImportedUpdate,
): Promise<CheckedChange> {
  return validateChange(ctx, db, before, toPatch(before, line), {
    by: "author",
    isAuthor: true,
    isImport: true,
  });
}

/**
 * An exported file contains its version and changelog, which must not count as a change. Only a greater version counts;
 * without one, changed content gets the next version.
 */
function toPatch(before: LockedProduct, line: ImportedUpdate): UpdateProduct {
  const { id: _, status: __, version, changelog, ...patch } = line;
  if (!before.firstPublishedAt) return { ...patch, version, changelog };
  const isNew = version !== undefined && isNewerVersion(version, before.version);
  const isOldNote = !isNew && changelog === before.changelog;
  return { ...patch, version: isNew ? version : undefined, changelog: isOldNote ? undefined : changelog };
}
