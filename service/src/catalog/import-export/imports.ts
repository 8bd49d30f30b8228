import type { ImportResult, ProductStatus } from "@stoa/contract";
import { limitConcurrency } from "../../accounts/people/concurrency-limit.ts";
import { promoteToSeller } from "../../accounts/people/users.ts";
import type { Context, Member, RequestSource } from "../../core/context.ts";
import { ApiError, fieldProblemsOf } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import type { Tx } from "../../platform/db/database.ts";
import { lockOwnProducts, ownProducts } from "../products/ownership.ts";
import { writeChecked, writeDraft } from "../products/products.ts";
import { moveProduct } from "../products/states.ts";
import { breathe, type Item, placeOf } from "./items.ts";
import { productsNamed } from "./names.ts";
import { type Changing, changeBy, inParts, planOf, type Step } from "./plan.ts";
import { Problems, WHOLE } from "./problems.ts";
import { writeNames } from "./queries.ts";

type Outcome = ImportResult["products"][number];

export interface Wish {
  dryRun: boolean;
  publish: boolean;
}

/** The products changed between the look and the deed. */
class Overtaken extends Error {}
const MAX_TRIES = 3;

/** Each writes for seconds, and those of one seller wait for each other: they must not hold all of a pool's connections. */
const inTurn = limitConcurrency({ atOnce: 2, waiting: 100 });

/**
 * Makes and changes products as a file says. All of it is checked before anything is written, and everything is written
 * in one transaction, or nothing. `read` gives the items and tells what cannot be read.
 */
export async function importProducts(
  ctx: Context,
  caller: Member,
  read: (problems: Problems) => Promise<Item[]>,
  wish: Wish,
  source: RequestSource | null,
): Promise<ImportResult> {
  const found = new Problems();
  const items = await read(found);
  const outcomes = await tried(ctx, caller, { items, found }, wish);
  if (wish.dryRun) return resultOf(outcomes, wish);
  if (wish.publish) for (const one of outcomes) await publish(ctx, caller, one, source);
  return resultOf(outcomes, wish);
}

/** An outcome beside what its line wanted, and the status before anything is published. */
interface Done {
  wanted?: ProductStatus | undefined;
  before: ProductStatus;
  outcome: Outcome;
}

/** Of an import that was written under the same Idempotency-Key: what it had not published yet is published. */
export async function resumeImport(
  ctx: Context,
  caller: Member,
  written: string,
  wish: Wish,
  source: RequestSource | null,
): Promise<ImportResult> {
  const outcomes = JSON.parse(written) as Done[];
  for (const some of inParts(outcomes)) {
    const ids = some.map(({ outcome }) => toUuid("prod", outcome.id!)!);
    const statuses = new Map(
      (await ownProducts(ctx.db, caller.userId, ids)).map(({ id, status }) => [toId("prod", id), status]),
    );
    for (const { outcome } of some) outcome.status = statuses.get(outcome.id!) ?? outcome.status;
  }
  if (wish.publish) for (const one of outcomes) await publish(ctx, caller, one, source);
  return resultOf(outcomes, wish);
}

/** Whoever is overtaken looks again: by another import of theirs, or by a change at another door. */
async function tried(
  ctx: Context,
  { userId }: Member,
  { items, found }: { items: Item[]; found: Problems },
  { dryRun }: Wish,
): Promise<Done[]> {
  for (let attempt = 1; attempt <= MAX_TRIES; attempt++) {
    const problems = found.copy();
    const steps = await planOf(ctx, userId, items, problems);
    problems.mustBeNone();
    if (dryRun) return steps.map(foreseen);
    try {
      return await inTurn(() => ctx.db.transaction().execute((tx) => carryOut(ctx, tx, userId, steps)));
    } catch (error) {
      if (!(error instanceof Overtaken)) throw error;
    }
  }
  throw new ApiError("CONFLICT", "Your products are being changed elsewhere: send the file again.");
}

const foreseen = (step: Step): Done => {
  const outcome: Outcome =
    "draft" in step
      ? { ...placeOf(step.item), id: null, title: step.draft.title, status: "draft", outcome: "created" }
      : {
          ...placeOf(step.item),
          id: toId("prod", step.productId),
          title: step.title,
          status: step.status,
          outcome: step.differs ? "updated" : "unchanged",
        };
  return { wanted: step.wanted, before: outcome.status, outcome };
};

async function carryOut(ctx: Context, tx: Tx, authorId: string, steps: Step[]): Promise<Done[]> {
  // Holds the author's row: imports of one seller come one after another.
  const author = await promoteToSeller(tx, authorId);
  await mustStandForTheSame(tx, authorId, steps);
  const changing = steps.filter((step): step is Changing => !("draft" in step));
  for (const some of inParts(changing)) await change(ctx, tx, authorId, some);
  const names: { name: string; productId: string }[] = [];
  const done: Done[] = [];
  for (const step of steps) {
    const one = foreseen(step);
    if ("draft" in step) {
      const productId = await writeDraft(ctx, tx, { ...author, id: authorId }, step.draft);
      if (step.name !== undefined) names.push({ name: step.name, productId });
      one.outcome.id = toId("prod", productId);
    }
    done.push(one);
  }
  await writeNames(tx, authorId, names);
  await ctx.idempotencyKey?.bind(tx, JSON.stringify(done));
  return done;
}

/** What was nobody's name must still be nobody's, and what was a product's still that product's. */
async function mustStandForTheSame(tx: Tx, authorId: string, steps: Step[]): Promise<void> {
  const names = steps.map(({ name }) => name).filter((name) => name !== undefined);
  const now = await productsNamed(tx, authorId, names);
  for (const step of steps) {
    const seen = "draft" in step ? undefined : step.productId;
    if (step.name !== undefined && now.get(step.name) !== seen) throw new Overtaken();
  }
}

/** Compared anew under the lock: what was seen before may have changed. */
async function change(ctx: Context, tx: Tx, authorId: string, steps: Changing[]): Promise<void> {
  const ids = steps.map(({ productId }) => productId);
  const products = new Map((await lockOwnProducts(tx, authorId, ids)).map((row) => [row.id, row]));
  for (const step of steps) {
    const before = products.get(step.productId);
    if (!before) throw new Overtaken();
    const changes = await stillAllowed(() => changeBy(ctx, tx, before, step.line));
    if (changes.fields.length > 0 !== step.differs || before.status !== step.status) throw new Overtaken();
    if (step.differs) await writeChecked(ctx, tx, changes);
    await breathe();
  }
}

/** A rule that is broken by now is told by its line, on the next look. */
async function stillAllowed<T>(check: () => Promise<T>): Promise<T> {
  try {
    return await check();
  } catch (error) {
    throw error instanceof ApiError ? new Overtaken() : error;
  }
}

/** The usual way, one by one: what the checklist lacks keeps no other product back. */
async function publish(
  ctx: Context,
  caller: Member,
  { wanted, outcome }: Done,
  source: RequestSource | null,
) {
  const isWanted = wanted === undefined || wanted === "published";
  if (!isWanted || ["published", "pending_review"].includes(outcome.status)) return;
  try {
    outcome.status = (await moveProduct(ctx, caller, outcome.id!, "publish", { source })).data.status;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    outcome.notPublished = fieldProblemsOf(error, WHOLE);
  }
}

function resultOf(done: Done[], { dryRun }: Wish): ImportResult {
  const products = done.map(({ outcome }) => outcome);
  const count = (outcome: Outcome["outcome"]) => products.filter((one) => one.outcome === outcome).length;
  return {
    dryRun,
    created: count("created"),
    updated: count("updated"),
    unchanged: count("unchanged"),
    published: done.filter(isPublishedNow).length,
    products,
  };
}

const isPublishedNow = ({ before, outcome }: Done) =>
  outcome.status === "published" && before !== "published";
