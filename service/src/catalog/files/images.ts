import { MAX_IMAGES, type UpdateImage } from "@stoa/contract";
import type { Context, Member, RequestSource } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { requireUuid, toId, toUuid } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import type { UploadedFile } from "../../platform/http/multipart.ts";
import { type StoredImage, toProductImage } from "../products/attachments.ts";
import { authorizeChange } from "../products/ownership.ts";
import { changeAttachments } from "../products/products.ts";
import { imageKey, storeBlob } from "./blobs.ts";
import { encodeImage } from "./image-encoder.ts";

/** The same picture again only changes its alternative text. */
export async function addImage(
  ctx: Context,
  caller: Member,
  productId: string,
  upload: UploadedFile,
  { alt, source }: { alt: string | undefined; source: RequestSource },
) {
  const { id } = await authorizeChange(ctx, caller, productId);
  const { renditions, ...encoded } = await encodeImage(upload);
  for (const { width, sha256, bytes } of renditions)
    await storeBlob(ctx, { key: imageKey(encoded.hash, width), sha256, size: bytes.length, source: bytes });
  const image = { id: ctx.newId(), ...encoded, alt: alt ?? "" };
  const product = await changeAttachments(ctx, { caller, source }, id, ({ images }) => ({
    images: addOrUpdateImage(images, image, alt),
  }));
  const stored = product.images.find(({ hash }) => hash === image.hash);
  return toProductImage(ctx, required(stored, "the image that was stored"));
}

function addOrUpdateImage(images: StoredImage[], image: StoredImage, alt: string | undefined): StoredImage[] {
  const same = images.find(({ hash }) => hash === image.hash);
  if (same) return images.map((one) => (one === same ? { ...one, alt: alt ?? one.alt } : one));
  if (images.length < MAX_IMAGES) return [...images, image];
  throw ruleViolation(
    "file",
    `is one too many: a product has at most ${MAX_IMAGES} images, take one away first`,
  );
}

export async function changeImage(
  ctx: Context,
  caller: Member,
  ids: { productId: string; imageId: string },
  { alt, position }: UpdateImage,
  source: RequestSource,
) {
  const { id } = await authorizeChange(ctx, caller, ids.productId);
  const imageId = toUuid("img", ids.imageId);
  const product = await changeAttachments(ctx, { caller, source }, id, ({ images }) => {
    const at = images.findIndex((image) => image.id === imageId);
    const image = images[at];
    if (!image) throw new ApiError("IMAGE_NOT_FOUND");
    const others = images.filter((one) => one !== image);
    return { images: others.toSpliced((position ?? at + 1) - 1, 0, { ...image, alt: alt ?? image.alt }) };
  });
  const stored = product.images.find((image) => image.id === imageId);
  return toProductImage(ctx, required(stored, "the image that was changed"));
}

export async function removeImage(
  ctx: Context,
  caller: Member,
  ids: { productId: string; imageId: string },
  source: RequestSource,
) {
  const { id } = await authorizeChange(ctx, caller, ids.productId);
  const imageId = toUuid("img", ids.imageId);
  await changeAttachments(ctx, { caller, source }, id, ({ images }) => {
    if (!images.some((image) => image.id === imageId)) throw new ApiError("IMAGE_NOT_FOUND");
    return { images: images.filter((image) => image.id !== imageId) };
  });
  return { id: toId("img", requireUuid("img", ids.imageId)) };
}
