import { type ChangeProduct, ImportedChange, ImportedProduct, type ProductStatus } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { invalidRequest } from "../../core/errors.ts";
import type { Queries } from "../../platform/db/database.ts";
import { parse, parseNew } from "../../platform/http/validate.ts";
import { type Locked, ownProducts } from "../products/ownership.ts";
import { type Change, checkedChange, checkedDraft, type Draft } from "../products/products.ts";
import { isAfter } from "../products/version.ts";
import { knownCategories } from "../search/categories.ts";
import { breathe, type Item, placeIn } from "./items.ts";
import { productsNamed } from "./names.ts";
import { type Problems, WHOLE } from "./problems.ts";

interface Common {
  item: Item;
  /** What its author calls it. */
  name: string | undefined;
  /** The status that the line wants. */
  wanted: ProductStatus | undefined;
}
export interface Making extends Common {
  draft: Draft;
}
export interface Changing extends Common {
  productId: string;
  line: ImportedChange;
  /** As the change would leave it, and whether that differs. */
  title: string;
  status: ProductStatus;
  differs: boolean;
}
/** What is to be done for one product of a file. */
export type Step = Making | Changing;

/** So few products at once that even the longest contents are some megabytes. */
const PRODUCTS_AT_ONCE = 50;

/** What the file asks for, all of it checked and nothing written; everything that is wrong goes to `problems`. */
export async function planOf(
  ctx: Context,
  authorId: string,
  items: Item[],
  problems: Problems,
): Promise<Step[]> {
  const names = items.map(({ value }) => nameIn(value)).filter((name) => name !== undefined);
  const named = await productsNamed(ctx.db, authorId, names);
  const once = firstOfEach(items, named, problems);
  const drafts: Making[] = [];
  const changes: Aimed[] = [];
  for (const item of once) {
    const productId = named.get(nameIn(item.value) ?? "");
    await attempt(problems, item, async () => {
      if (productId === undefined) drafts.push(await toMaking(ctx, item));
      else changes.push(toAimed(item, productId));
    });
    await breathe();
  }
  await checkCategories(ctx, [...drafts, ...changes], problems);
  const changing = await compared(ctx, authorId, changes, problems);
  const places = new Map(items.map((item, at) => [item, at]));
  return [...drafts, ...changing].toSorted((a, b) => places.get(a.item)! - places.get(b.item)!);
}

type Aimed = Pick<Changing, "item" | "name" | "wanted" | "productId" | "line">;

async function attempt(problems: Problems, item: Item, check: () => Promise<void>): Promise<void> {
  try {
    await check();
  } catch (error) {
    problems.add(error, placeIn(item));
  }
}

/** The id of a line that is not checked yet. */
function nameIn(value: unknown): string | undefined {
  const id = (value as { id?: unknown } | null)?.id;
  return typeof id === "string" && id.trim() !== "" ? id.trim() : undefined;
}

/** Two lines for one product would contradict each other: the first one counts, the others are told. */
function firstOfEach(items: Item[], named: Map<string, string>, problems: Problems): Item[] {
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
    problems.add(invalidRequest("id", `is that of ${other.file ?? `line ${other.line}`} too`), placeIn(item));
    return false;
  });
}

async function toMaking(ctx: Context, item: Item): Promise<Making> {
  const { id: name, status: wanted, ...wish } = parseNew(ImportedProduct, item.value, WHOLE);
  return { item, name, wanted, draft: await checkedDraft(ctx, wish) };
}

function toAimed(item: Item, productId: string): Aimed {
  const line = parse(ImportedChange, item.value, WHOLE);
  return { item, name: line.id, wanted: line.status, productId, line };
}

async function checkCategories(ctx: Context, steps: (Making | Aimed)[], problems: Problems): Promise<void> {
  const categoryOf = (step: Making | Aimed) => ("draft" in step ? step.draft : step.line).category;
  const asked = steps.map(categoryOf).filter((slug) => slug !== undefined);
  const known = await knownCategories(ctx, [...new Set(asked)]);
  for (const step of steps) {
    const slug = categoryOf(step);
    if (slug !== undefined && !known.has(slug))
      problems.add(invalidRequest("category", "is not a slug of GET /categories"), placeIn(step.item));
  }
}

/** The changes beside the products that they would change, as these are now. */
async function compared(
  ctx: Context,
  authorId: string,
  changes: Aimed[],
  problems: Problems,
): Promise<Changing[]> {
  const changing: Changing[] = [];
  for (const some of inParts(changes)) {
    const ids = some.map(({ productId }) => productId);
    const products = new Map((await ownProducts(ctx.db, authorId, ids)).map((row) => [row.id, row]));
    for (const aimed of some) {
      const before = products.get(aimed.productId);
      if (!before) continue;
      await attempt(problems, aimed.item, async () => {
        const { after, fields } = await changeBy(ctx, ctx.db, before, aimed.line);
        changing.push({ ...aimed, title: after.title, status: before.status, differs: fields.length > 0 });
      });
      await breathe();
    }
  }
  return changing;
}

export function* inParts<T>(all: T[]): Generator<T[]> {
  for (let from = 0; from < all.length; from += PRODUCTS_AT_ONCE)
    yield all.slice(from, from + PRODUCTS_AT_ONCE);
}

/** What a line makes of its product; refused by the same rules as PATCH. */
export async function changeBy(
  ctx: Context,
  db: Queries,
  before: Locked,
  line: ImportedChange,
): Promise<Change> {
  return checkedChange(ctx, db, before, toPatch(before, line));
}

/**
 * A file tells the version from which it was made, and that version's note: no wish to go back to it. Only a greater one
 * is a wish, and without one a change of content takes the next.
 */
function toPatch(before: Locked, line: ImportedChange): ChangeProduct {
  const { id: _, status: __, version, changelog, ...patch } = line;
  if (!before.firstPublishedAt) return { ...patch, version, changelog };
  const isNew = version !== undefined && isAfter(version, before.version);
  const isOldNote = !isNew && changelog === before.changelog;
  return { ...patch, version: isNew ? version : undefined, changelog: isOldNote ? undefined : changelog };
}
