import type { Readable } from "node:stream";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { requireUuid, toUuid } from "../../core/ids.ts";
import type { Range } from "../../integrations/storage/storage.ts";
import { recordFirstUse } from "../entitlements/entitlements.ts";
import { downloadPath } from "../products/attachments.ts";
import { mustNotBeWithheld } from "../products/product-lookup.ts";
import { fileKey, readBlob } from "./blobs.ts";
import { type FileForReader, findBlob, findFileForReader, hasFile } from "./queries.ts";

export interface FileLink {
  productId: string;
  fileId: string;
  readerId: string;
}

/** The file behind a signed link. The link names the reader, whose entitlement is checked at each request. */
export async function findLinkedFile(
  ctx: Context,
  linked: FileLink,
  query: { expires?: unknown; signature?: unknown },
): Promise<FileForReader> {
  if (!ctx.links.isValid(downloadPath(linked), query, ctx.now()))
    throw new ApiError(
      "UNAUTHORIZED",
      "This link has expired or was changed. GET the product for a new one.",
    );
  const productId = toUuid("prod", linked.productId);
  const fileId = toUuid("file", linked.fileId);
  const readerId = toUuid("usr", linked.readerId);
  if (!productId || !fileId || !readerId) throw new ApiError("FILE_NOT_FOUND");
  const found = await findFileForReader(ctx.db, { productId, fileId, readerId });
  if (!found) throw await accessError(ctx, productId, fileId);
  if (found.reason === "purchased") await mustNotBeWithheld(ctx.db, productId);
  return found;
}

const accessError = async (ctx: Context, productId: string, fileId: string) =>
  (await hasFile(ctx.db, productId, fileId))
    ? new ApiError("UNAUTHORIZED", "You no longer have access to this product.")
    : new ApiError("FILE_NOT_FOUND");

/** A download counts as use only when the storage has the bytes. HEAD does not count. */
export async function openFile(
  ctx: Context,
  { productId, readerId }: FileLink,
  { file: { sha256 }, reason }: FileForReader,
  range?: Range,
): Promise<Readable> {
  const blob = await findBlob(ctx.db, fileKey(sha256));
  if (!blob) throw new Error(`no bytes are known for the file ${sha256}`);
  const bytes = await readBlob(ctx, blob.name, range);
  try {
    if (reason === "purchased")
      await recordFirstUse(ctx, requireUuid("usr", readerId), requireUuid("prod", productId));
  } catch (error) {
    bytes.destroy();
    throw error;
  }
  return bytes;
}

const ONE_RANGE = /^bytes=(\d{1,15})?-(\d{1,15})?$/;

/** Parses a Range header (RFC 9110, 14). undefined: the whole file, also for units that we may ignore; null: not satisfiable. */
export function parseRange(header: string | undefined, size: number): Range | null | undefined {
  const [, first, last] = ONE_RANGE.exec(header ?? "") ?? [];
  if (first === undefined && last === undefined) return undefined;
  if (first === undefined)
    return Number(last) === 0 ? null : { start: Math.max(0, size - Number(last)), end: size - 1 };
  const range = { start: Number(first), end: Math.min(size - 1, Number(last ?? size - 1)) };
  if (last !== undefined && Number(last) < range.start) return undefined;
  return range.start < size ? range : null;
}
