import type { Context, Member, RequestSource } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import type { UploadedFile } from "../../platform/http/multipart.ts";
import { imageOf, type StoredImage } from "../products/attachments.ts";
import { mustMayChange } from "../products/ownership.ts";
import { alterProduct } from "../products/products.ts";
import { imageKey, keepBlob } from "./blobs.ts";
import { encodeImage } from "./encode.ts";

const MAX_IMAGES = 10;

/** One picture more, encoded anew; the same one a second time only changes what it says for those who cannot see it. */
export async function addImage(
  ctx: Context,
  caller: Member,
  productId: string,
  upload: UploadedFile,
  { alt, source }: { alt: string | undefined; source: RequestSource },
) {
  const { id } = await mustMayChange(ctx, caller, productId);
  const { renditions, ...encoded } = await encodeImage(upload);
  for (const { width, sha256, bytes } of renditions)
    await keepBlob(ctx, { key: imageKey(encoded.hash, width), sha256, size: bytes.length, source: bytes });
  const image = { id: ctx.newId(), ...encoded, alt: alt ?? "" };
  const product = await alterProduct(ctx, { caller, source }, id, ({ images }) => ({
    images: withImage(images, image, alt),
  }));
  return imageOf(ctx, product.images.find(({ hash }) => hash === image.hash)!);
}

function withImage(images: StoredImage[], image: StoredImage, alt: string | undefined): StoredImage[] {
  const same = images.find(({ hash }) => hash === image.hash);
  if (same) return images.map((one) => (one === same ? { ...one, alt: alt ?? one.alt } : one));
  if (images.length < MAX_IMAGES) return [...images, image];
  throw ruleViolation(
    "file",
    `is one too many: a product has at most ${MAX_IMAGES} images, take one away first`,
  );
}

export async function removeImage(
  ctx: Context,
  caller: Member,
  ids: { productId: string; imageId: string },
  source: RequestSource,
) {
  const { id } = await mustMayChange(ctx, caller, ids.productId);
  const imageId = toUuid("img", ids.imageId);
  await alterProduct(ctx, { caller, source }, id, ({ images }) => {
    if (!images.some((image) => image.id === imageId)) throw new ApiError("IMAGE_NOT_FOUND");
    return { images: images.filter((image) => image.id !== imageId) };
  });
  return { id: toId("img", imageId!) };
}
