import { randomUUID } from "node:crypto";
import type { Readable } from "node:stream";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { type Range, StorageUnavailable } from "../../integrations/storage/storage.ts";
import { touchBlob } from "./queries.ts";

export const fileKey = (sha256: string) => `files/${sha256}`;
export const imageKey = (hash: string, width: number) => `images/${hash}-${width}.webp`;
export const avatarKey = (hash: string) => `avatars/${hash}.webp`;

interface BlobSource {
  key: string;
  sha256: string;
  size: number;
  source: Buffer | { path: string };
}

/**
 * Stores bytes before a row references them. The blob's row comes first and protects them from the sweep for a day. A
 * killed process leaves a row without bytes, which the next upload of the same bytes completes.
 */
export async function storeBlob(ctx: Context, { key, sha256, size, source }: BlobSource): Promise<void> {
  const name = await touchBlob(ctx.db, {
    key,
    name: `${sha256}-${randomUUID()}`,
    size,
    touchedAt: ctx.now(),
  });
  await unavailableOnStorageError(ctx, async () => {
    if (!(await ctx.integrations.storage.has(name))) await ctx.integrations.storage.put(name, source);
  });
}

/** A row without bytes is a defect, or another node has its own disk. */
export async function readBlob(ctx: Context, name: string, range?: Range): Promise<Readable> {
  const stream = await unavailableOnStorageError(ctx, () => ctx.integrations.storage.get(name, range));
  if (stream) return stream;
  ctx.log.error({ blob: name }, "a file is not in the storage: several nodes need S3_URL");
  throw new ApiError("SERVICE_UNAVAILABLE", undefined, undefined, 60);
}

async function unavailableOnStorageError<T>(ctx: Context, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof StorageUnavailable)) throw error;
    ctx.log.error({ err: error }, "the storage does not answer");
    throw new ApiError("SERVICE_UNAVAILABLE", undefined, undefined, 5);
  }
}
