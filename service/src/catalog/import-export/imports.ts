import type { ImportResult, ProductStatus } from "@stoa/contract";
import { limitConcurrency } from "../../accounts/people/concurrency-limit.ts";
import { lockAuthor, promoteToSeller } from "../../accounts/people/users.ts";
import { inBatches } from "../../core/batches.ts";
import type { Context, Member, RequestSource } from "../../core/context.ts";
import { ApiError, fieldProblemsOf } from "../../core/errors.ts";
import { requireUuid, toId } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import type { Tx } from "../../platform/db/database.ts";
import { type Publication, publishTogether } from "../products/moves.ts";
import { findOwnProducts, lockOwnProducts } from "../products/ownership.ts";
import { insertDrafts, writeChange } from "../products/products.ts";
import { type Item, locationOf, yieldToEventLoop } from "./import-items.ts";
import { ImportProblems, WHOLE_PRODUCT } from "./import-problems.ts";
import { BATCH_SIZE, buildSteps, checkUpdate, type ImportStep, type UpdateStep } from "./import-steps.ts";
import { findProductsByName } from "./product-names.ts";
import { upsertNames } from "./queries.ts";

type ItemOutcome = ImportResult["products"][number];

export interface ImportOptions {
  dryRun: boolean;
  publish: boolean;
}

class ConcurrentChangeError extends Error {}
const MAX_ATTEMPTS = 3;

/** Each import writes for seconds, and imports of one seller wait for each other. They must not use all connections of the pool. */
const withConcurrencyLimit = limitConcurrency({ atOnce: 2, waiting: 100 });

/** Of all imports: while products are written, the next ones are checked. */
const PUBLISHED_AT_ONCE = 2;
const PUBLISHED_TOGETHER = 25;
const withPublishingLimit = limitConcurrency({
  atOnce: PUBLISHED_AT_ONCE,
  waiting: Number.POSITIVE_INFINITY,
});

/**
 * Creates and changes products in one transaction, after the whole file has been validated. `read` returns the items and
 * reports unreadable ones.
 */
export async function importProducts(
  ctx: Context,
  caller: Member,
  read: (problems: ImportProblems) => Promise<Item[]>,
  input: ImportOptions,
  source: RequestSource | null,
): Promise<ImportResult> {
  const found = new ImportProblems();
  const items = await read(found);
  const outcomes = await importWithRetries(ctx, caller, { items, found }, input);
  if (input.dryRun) return toResult(outcomes, input);
  if (input.publish) await publishItems(ctx, caller, outcomes, source);
  return toResult(outcomes, input);
}

/** A result with the requested status, and the status before publishing. Stored as JSON with the Idempotency-Key. */
interface ImportedItem {
  wanted?: ProductStatus | undefined;
  type: string;
  before: ProductStatus;
  outcome: ItemOutcome;
}

const uuidOf = ({ outcome }: ImportedItem): string =>
  requireUuid("prod", required(outcome.id, "the id of a written product"));

/** Publishes what an interrupted import with the same Idempotency-Key had written but not published. */
export async function resumeImport(
  ctx: Context,
  caller: Member,
  written: string,
  input: ImportOptions,
  source: RequestSource | null,
): Promise<ImportResult> {
  const outcomes = JSON.parse(written) as ImportedItem[];
  for (const some of inBatches(outcomes, BATCH_SIZE)) {
    const ids = some.map(uuidOf);
    const statuses = new Map(
      (await findOwnProducts(ctx.db, caller.userId, ids)).map(({ id, status }) => [toId("prod", id), status]),
    );
    for (const { outcome } of some)
      outcome.status = statuses.get(required(outcome.id, "the id of a written product")) ?? outcome.status;
  }
  if (input.publish) await publishItems(ctx, caller, outcomes, source);
  return toResult(outcomes, input);
}

/** Checks again after a concurrent import or change. */
async function importWithRetries(
  ctx: Context,
  { userId }: Member,
  { items, found }: { items: Item[]; found: ImportProblems },
  { dryRun }: ImportOptions,
): Promise<ImportedItem[]> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const problems = found.copy();
    const steps = await buildSteps(ctx, userId, items, problems);
    problems.throwIfAny();
    if (dryRun) return steps.map(toExpectedItem);
    try {
      return await withConcurrencyLimit(() =>
        ctx.db.transaction().execute((tx) => importItems(ctx, tx, userId, steps)),
      );
    } catch (error) {
      if (!(error instanceof ConcurrentChangeError)) throw error;
    }
  }
  throw new ApiError("CONFLICT", "Your products are being changed elsewhere: send the file again.");
}

const toExpectedItem = (step: ImportStep): ImportedItem => {
  const outcome: ItemOutcome =
    "draft" in step
      ? { ...locationOf(step.item), id: null, title: step.draft.title, status: "draft", outcome: "created" }
      : {
          ...locationOf(step.item),
          id: toId("prod", step.productId),
          title: step.title,
          status: step.status,
          outcome: step.differs ? "updated" : "unchanged",
        };
  const { type } = "draft" in step ? step.draft : step;
  return { wanted: step.wanted, type, before: outcome.status, outcome };
};

async function importItems(
  ctx: Context,
  tx: Tx,
  authorId: string,
  steps: ImportStep[],
): Promise<ImportedItem[]> {
  // Locks the author's row: imports of one seller run one after another.
  const author = await lockAuthor(tx, authorId);
  await promoteToSeller(tx, author);
  await mustMatchNames(tx, authorId, steps);
  // Publications lock several products, and counted views their counters, in order of id: another order could deadlock.
  const changing = steps
    .filter((step): step is UpdateStep => !("draft" in step))
    .toSorted((a, b) => (a.productId < b.productId ? -1 : 1));
  for (const some of inBatches(changing, BATCH_SIZE)) await updateProducts(ctx, tx, authorId, some);
  const names: { name: string; productId: string }[] = [];
  const created = new Map<ImportStep, string>();
  for (const some of inBatches(
    steps.filter((step) => "draft" in step),
    BATCH_SIZE,
  )) {
    const ids = await insertDrafts(
      ctx,
      tx,
      author,
      some.map(({ draft }) => draft),
    );
    for (const [at, step] of some.entries()) {
      const productId = required(ids[at], "the id of a new product");
      created.set(step, productId);
      if (step.name !== undefined) names.push({ name: step.name, productId });
    }
  }
  const done = steps.map((step) => {
    const one = toExpectedItem(step);
    const productId = created.get(step);
    if (productId !== undefined) one.outcome.id = toId("prod", productId);
    return one;
  });
  await upsertNames(tx, authorId, names);
  await ctx.idempotencyKey?.bind(tx, JSON.stringify(done));
  return done;
}

/** A name must still mean the same product, or still be unused. */
async function mustMatchNames(tx: Tx, authorId: string, steps: ImportStep[]): Promise<void> {
  const names = steps.map(({ name }) => name).filter((name) => name !== undefined);
  const now = await findProductsByName(tx, authorId, names);
  for (const step of steps) {
    const expected = "draft" in step ? undefined : step.productId;
    if (step.name !== undefined && now.get(step.name) !== expected) throw new ConcurrentChangeError();
  }
}

/** Compares again under the lock: the product may have changed since the check. */
async function updateProducts(ctx: Context, tx: Tx, authorId: string, steps: UpdateStep[]): Promise<void> {
  const ids = steps.map(({ productId }) => productId);
  const products = new Map((await lockOwnProducts(tx, authorId, ids)).map((row) => [row.id, row]));
  for (const step of steps) {
    const before = products.get(step.productId);
    if (!before) throw new ConcurrentChangeError();
    const changes = await retryIfRefused(() => checkUpdate(ctx, tx, before, step.line));
    if (changes.fields.length > 0 !== step.differs || before.status !== step.status)
      throw new ConcurrentChangeError();
    if (step.differs) await writeChange(ctx, tx, changes);
    await yieldToEventLoop();
  }
}

/** The next attempt reports the broken rule with its line. */
async function retryIfRefused<T>(check: () => Promise<T>): Promise<T> {
  try {
    return await check();
  } catch (error) {
    throw error instanceof ApiError ? new ConcurrentChangeError() : error;
  }
}

/**
 * A missing checklist item affects no other product. Workflows follow one by one in the order of the file, because they
 * may call the other products and each other.
 */
async function publishItems(
  ctx: Context,
  caller: Member,
  items: ImportedItem[],
  source: RequestSource | null,
): Promise<void> {
  const wanted = items.filter(isToPublish);
  const isWorkflow = ({ type }: ImportedItem) => type === "WORKFLOW";
  const waiting = inBatches(
    wanted.filter((item) => !isWorkflow(item)),
    PUBLISHED_TOGETHER,
  );
  // A lane that fails ends the iterator, so that the others begin no further batch.
  const publishNext = async () => {
    for (const some of waiting) await publishBatch(ctx, caller, some, source);
  };
  const lanes = await Promise.allSettled(Array.from({ length: PUBLISHED_AT_ONCE }, publishNext));
  for (const lane of lanes) if (lane.status === "rejected") throw lane.reason;
  for (const item of wanted.filter(isWorkflow)) await publishBatch(ctx, caller, [item], source);
}

const isToPublish = ({ wanted, outcome }: ImportedItem) =>
  (wanted === undefined || wanted === "published") &&
  outcome.status !== "published" &&
  outcome.status !== "pending_review";

async function publishBatch(
  ctx: Context,
  caller: Member,
  items: ImportedItem[],
  source: RequestSource | null,
): Promise<void> {
  const waiting = new Map(items.map((item) => [uuidOf(item), item]));
  while (waiting.size > 0) {
    const ids = [...waiting.keys()];
    const publications = await withPublishingLimit(() => publishTogether(ctx, caller, ids, source));
    for (const [id, publication] of publications) {
      setPublication(required(waiting.get(id), "the item of a publication").outcome, publication);
      waiting.delete(id);
    }
  }
}

function setPublication(outcome: ItemOutcome, publication: Publication): void {
  if ("error" in publication) outcome.notPublished = fieldProblemsOf(publication.error, WHOLE_PRODUCT);
  else outcome.status = publication.status;
}

function toResult(done: ImportedItem[], { dryRun }: ImportOptions): ImportResult {
  const products = done.map(({ outcome }) => outcome);
  const count = (outcome: ItemOutcome["outcome"]) => products.filter((one) => one.outcome === outcome).length;
  return {
    dryRun,
    created: count("created"),
    updated: count("updated"),
    unchanged: count("unchanged"),
    published: done.filter(wasPublished).length,
    products,
  };
}

const wasPublished = ({ before, outcome }: ImportedItem) =>
  outcome.status === "published" && before !== "published";
