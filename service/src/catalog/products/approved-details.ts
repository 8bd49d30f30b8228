import { contentPreview, type ProductChecks } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { type StoredImage, toProductImage, toRemovedImage } from "./attachments.ts";
import type { ProductWithVersion } from "./queries.ts";
import { toSample } from "./samples.ts";

const FIELDS = [
  ...([
    "category",
    "lang",
    "tags",
    "requirements",
    "features",
    "license",
    "compatibility",
    "models",
  ] as const),
  ...(["preview", "priceMinor", "currency", "samples", "images"] as const),
] satisfies (keyof ProductWithVersion)[];

/** What moderators see of a product beside its version. */
type ApprovedDetails = Pick<ProductWithVersion, (typeof FIELDS)[number]>;

export interface Approval {
  approvedDetails: string;
  /** The digests of the images: their bytes stay while a change waits for its approval. */
  approvedImages: string[];
}

/** The columns of an approval, with the fields as they are now. */
export const renderApproval = (product: ApprovedDetails): Approval => ({
  approvedImages: product.images.map(({ hash }) => hash),
  approvedDetails: JSON.stringify(Object.fromEntries(FIELDS.map((field) => [field, product[field]]))),
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
