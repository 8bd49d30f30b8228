import { contentPreview, type ProductChecks } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { toProductImage } from "./attachments.ts";
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

/** For the column `approved_details`: the fields as they are now. */
export const renderApprovedDetails = (product: ApprovedDetails): string =>
  JSON.stringify({
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
  } satisfies ApprovedDetails);

type ShownDetails = NonNullable<NonNullable<ProductChecks["approved"]>["details"]>;

/** `content` is that of the approved version. */
export function toApprovedDetails(ctx: Context, stored: string, content: string): ShownDetails {
  const { preview, priceMinor, samples, images, ...same } = JSON.parse(stored) as ApprovedDetails;
  return {
    ...same,
    contentPreview: contentPreview(preview, content),
    price: toDecimal(priceMinor, same.currency),
    samples: samples.map(toSample),
    gallery: images.map((image) => toProductImage(ctx, image)),
  };
}
