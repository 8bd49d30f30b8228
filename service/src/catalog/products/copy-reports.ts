import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { NIL } from "uuid";
import type { Context } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import type { Queries } from "../../platform/db/database.ts";
import type { JobDefinition } from "../../platform/jobs/job-queue.ts";
import {
  findLookAlikes,
  findNearDuplicates,
  fingerprintProduct,
  type NearDuplicate,
  type ProductFingerprint,
  storeFingerprints,
} from "../duplicates/duplicates.ts";
import {
  type FingerprintedProduct,
  listFingerprinted,
  listFingerprintStates,
} from "../duplicates/queries.ts";
import { insertReport } from "./report-queries.ts";

export const checkForCopiesJob: JobDefinition = {
  name: "check-for-copies",
  retries: 10,
  retryDelaySeconds: 10,
  maxRetryDelaySeconds: 3_600,
  attemptTimeoutSeconds: 300,
};

export interface CheckForCopiesData {
  productId: string;
}

const BATCH_SIZE = 1_000;
const NAMED_PRODUCTS = 3;
const MAX_TITLE_CHARACTERS = 80;

/** In the transaction that puts products on sale, or changes the title or version of one on sale. */
export const requestCopyChecks = (ctx: Context, tx: Queries, productIds: string[]): Promise<void> =>
  ctx.jobs.sendMany(
    tx,
    checkForCopiesJob.name,
    productIds.map((productId): CheckForCopiesData => ({ productId })),
  );

/** Each statement is for all products of a batch. Their contents together are some megabytes at most. */
export const COPY_CHECKS_TOGETHER = 25;

/**
 * Stores the fingerprints of products on sale. Reports those to the moderators, in the name of the marketplace, of which another seller
 * published nearly the same text before, or sells more under almost the same title.
 */
export async function checkForCopies(ctx: Context, jobs: CheckForCopiesData[]): Promise<void> {
  const ids = [...new Set(jobs.map(({ productId }) => productId))];
  const products = (await listFingerprinted(ctx.db, ids)).filter(({ status }) => status === "published");
  if (products.length === 0) return;
  const fingerprints: ProductFingerprint[] = [];
  for (const product of products) {
    fingerprints.push(fingerprintProduct(product));
    await yieldToEventLoop();
  }
  await storeFingerprints(ctx, fingerprints);
  const [duplicates, lookAlikes] = await Promise.all([
    findNearDuplicates(ctx.db, fingerprints),
    findLookAlikes(ctx.db, products),
  ]);
  for (const [nth, product] of products.entries())
    await reportCopy(ctx, product, duplicates[nth] ?? [], lookAlikes[nth] ?? []);
}

async function reportCopy(
  ctx: Context,
  product: FingerprintedProduct,
  duplicates: NearDuplicate[],
  lookAlikes: FingerprintedProduct[],
): Promise<void> {
  const originals = duplicates.filter(({ product: other }) => isOriginal(product, other));
  if (originals.length === 0 && lookAlikes.length === 0) return;
  const comment = [
    ...originals.map(
      ({ product: other, similarity }) =>
        `Its text is ${Math.floor(similarity * 100)} % the same as that of ${nameOf(other)}, which was published before.`,
    ),
    ...lookAlikes.map((other) => `Its title is almost that of ${nameOf(other)}, which sold more.`),
  ];
  const report = {
    productId: product.id,
    reporterId: null,
    reasonCode: originals.length > 0 ? ("infringing" as const) : ("misleading" as const),
    comment: comment.slice(0, NAMED_PRODUCTS).join(" "),
    createdAt: ctx.now(),
  };
  await ctx.db.transaction().execute((tx) => insertReport(tx, report));
}

const isOriginal = (product: FingerprintedProduct, other: FingerprintedProduct): boolean =>
  other.authorId !== product.authorId && other.firstPublishedAt < product.firstPublishedAt;

const nameOf = ({ id, title }: FingerprintedProduct): string =>
  `“${title.slice(0, MAX_TITLE_CHARACTERS).toWellFormed()}” (${toId("prod", id)})`;

/** Requests the check of each product on sale that was never checked, such as those that are older than the check. */
export async function requestMissingCopyChecks(ctx: Context): Promise<void> {
  let after: string = NIL;
  for (;;) {
    const states = await listFingerprintStates(ctx.db, after, BATCH_SIZE);
    const missing = states.filter(({ isFingerprinted }) => !isFingerprinted).map(({ id }) => id);
    if (missing.length > 0) await requestCopyChecks(ctx, ctx.db, missing);
    const last = states.at(-1);
    if (!last || states.length < BATCH_SIZE) return;
    after = last.id;
  }
}
