import { contentPreview, type ProductChecks } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { type StoredImage, toProductImage, toRemovedImage } from "./attachments.ts";
import type { ProductWithVersion } from "./queries.ts";
import { toSample } from "./samples.ts";

/** What moderators see of a product beside its version. */
type ApprovedDetails = Pick<
  ProductWithVersion,
  | "category"
  | "lang"
  | "tags"
  | "requirements"
  | "features"
  | "license"
  | "compatibility"
  | "models"
  | "preview"
  | "priceMinor"
  | "currency"
  | "samples"
  | "images"
>;

export interface Approval {
  approvedDetails: string;
  /** The digests of the images: their bytes stay while a change waits for its approval. */
  approvedImages: string[];
}

/** The columns of an approval, with the fields as they are now. */
export const renderApproval = (product: ApprovedDetails): Approval => ({
  approvedImages: product.images.map(({ hash }) => hash),
  approvedDetails: JSON.stringify({
    category: product.category,
    lang: product.lang,
    tags: product.tags,
    requirements: product.requirements,
    features: product.features,
    license: product.license,
    compatibility: product.compatibility,
    models: product.models,
    preview: product.preview,
    priceMinor: product.priceMinor,
    currency: product.currency,
    samples: product.samples,
    images: product.images,
  } satisfies ApprovedDetails),
});

type ShownDetails = NonNullable<NonNullable<ProductChecks["approved"]>["details"]>;

/** `content` is that of the approved version, `currentImages` are those that the product shows now. */
export function toApprovedDetails(
  ctx: Context,
  stored: string,
  { content, currentImages }: { content: string; currentImages: StoredImage[] },
): ShownDetails {
  const { preview, priceMinor, samples, images, ...same } = JSON.parse(stored) as ApprovedDetails;
  return {
    ...same,
    contentPreview: contentPreview(preview, content),
    price: toDecimal(priceMinor, same.currency),
    samples: samples.map(toSample),
    gallery: images.map((image) =>
      currentImages.some(({ hash }) => hash === image.hash)
        ? toProductImage(ctx, image)
        : toRemovedImage(ctx, image),
    ),
  };
}
