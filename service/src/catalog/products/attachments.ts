import type { ProductFile, ProductImage } from "@stoa/contract";
import { toUserId } from "../../accounts/people/users.ts";
import type { Context, Member } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { linkExpiry } from "../../core/links.ts";
import { IMAGE_WIDTHS, imagePath } from "../search/card.ts";

/** The storage has the bytes under their digest. */
export interface StoredFile {
  id: string;
  name: string;
  size: number;
  type: string;
  sha256: string;
}

/** WebP in several widths. Hash and size are those of the widest. */
export interface StoredImage {
  id: string;
  hash: string;
  alt: string;
  width: number;
  height: number;
}

/** Links expire after 15 to 30 minutes. */
const LINK_MINUTES = 15;
export const fileLinkExpiry = (now: Date) => linkExpiry(now, LINK_MINUTES);

/** The signed path. It contains the reader's id, so that each request can check the entitlement. */
export const downloadPath = (ids: { productId: string; fileId: string; readerId: string }) =>
  `/v1/products/${ids.productId}/files/${ids.fileId}/download/${ids.readerId}`;

export function toProductFile(
  ctx: Context,
  productId: string,
  { id, name, size, type, sha256 }: StoredFile,
  reader: Member,
): ProductFile {
  const ids = { productId: toId("prod", productId), fileId: toId("file", id) };
  const path = downloadPath({ ...ids, readerId: toUserId(reader.userId) });
  return { id: ids.fileId, name, size, type, sha256, url: ctx.links.sign(path, fileLinkExpiry(ctx.now())) };
}

export const toProductFiles = (ctx: Context, product: { id: string; files: StoredFile[] }, reader: Member) =>
  product.files.map((file) => toProductFile(ctx, product.id, file, reader));

const MAX_WIDTH = IMAGE_WIDTHS[2];

export function toProductImage(
  ctx: Context,
  { id, hash, alt, width, height }: StoredImage,
  link = (path: string) => ctx.links.origin() + path,
): ProductImage {
  const sizes = IMAGE_WIDTHS.map((one) => ({
    width: Math.min(one, width),
    url: link(imagePath(hash, one)),
  }));
  return { id: toId("img", id), alt, url: link(imagePath(hash, MAX_WIDTH)), width, height, sizes };
}

/** An image that no product shows is public no more: moderators get signed links. */
export const toRemovedImage = (ctx: Context, image: StoredImage): ProductImage =>
  toProductImage(ctx, image, (path) => ctx.links.sign(path, fileLinkExpiry(ctx.now())));
