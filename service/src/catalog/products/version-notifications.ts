import { notifyAccounts } from "../../accounts/notifications/notify-account.ts";
import type { Context } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import type { Tx } from "../../platform/db/database.ts";
import type { JobDefinition } from "../../platform/jobs/job-queue.ts";
import { hasEntitlements, listEntitledBuyers } from "../entitlements/entitlements.ts";
import type { LockedProduct } from "./ownership.ts";
import { isWithheldFromBuyers } from "./product-lookup.ts";
import { findReleased } from "./queries.ts";

export const notifyBuyersJob: JobDefinition = {
  name: "notify-buyers-of-version",
  retries: 20,
  retryDelaySeconds: 30,
  maxRetryDelaySeconds: 3_600,
  attemptTimeoutSeconds: 900,
};

export interface NotifyBuyersData {
  productId: string;
  released: number[];
}

const BATCH_SIZE = 1_000;

/** Requests the job in the transaction that released a version. A product may have more buyers than a request has time for. */
export async function requestVersionNotifications(
  ctx: Context,
  tx: Tx,
  before: LockedProduct,
  after: LockedProduct,
): Promise<void> {
  const { id: productId, released } = after;
  if (!before.firstPublishedAt || !released || isSameVersion(before.released, released)) return;
  const data: NotifyBuyersData = { productId, released };
  if (await hasEntitlements(tx, productId)) await ctx.jobs.send(tx, notifyBuyersJob.name, data);
}

const isSameVersion = (a: number[] | null, b: number[]) => a?.join(".") === b.join(".");

/**
 * Notifies the buyers of the version's major line, in batches. A retry begins anew and changes nothing that is written. Ends early when a
 * newer version replaced this one, because that has its own job.
 */
export async function notifyBuyers(
  ctx: Context,
  { productId, released }: NotifyBuyersData,
  signal: AbortSignal,
  batchSize = BATCH_SIZE,
): Promise<void> {
  let after: string | null = null;
  for (;;) {
    signal.throwIfAborted();
    const product = await findReleased(ctx.db, productId);
    if (!product || !isSameVersion(product.released, released)) return;
    if (await isWithheldFromBuyers(ctx.db, productId)) return;
    const line = { productId, major: released[0] ?? 0 };
    const buyers: string[] = await listEntitledBuyers(ctx.db, line, after, batchSize);
    await notifyAccounts(ctx, buyers, {
      kind: "product.version_released",
      subjectId: toId("prod", productId),
      data: { product: product.title, version: released.join(".") },
      order: toSortKey(released),
    });
    if (buyers.length < batchSize) return;
    after = buyers.at(-1) ?? null;
  }
}

/** Versions as texts sort as versions do. */
const toSortKey = (released: number[]) =>
  released.map((number) => String(number).padStart(10, "0")).join(".");
