import type { ProductDetail } from "@stoa/contract";
import { authorOf, averageRating, sharedFields } from "../catalogue/card.ts";
import { noteView } from "../catalogue/views.ts";
import { type Caller, type Context, isMember } from "../context.ts";
import { majorOf, noteUse } from "../entitlements/entitlements.ts";
import { ApiError } from "../errors.ts";
import { isAdmin } from "../http/authenticate.ts";
import { Answer } from "../http/route.ts";
import { toUuid } from "../ids.ts";
import { filesFor, imageOf, linksUntil } from "./attachments.ts";
import { previewOf } from "./content.ts";
import { findProductForReader, type ProductForReader } from "./queries.ts";

type Reason = ProductDetail["access"]["reason"];

const userIdOf = (caller: Caller) => (isMember(caller) ? caller.userId : null);

/** Why the caller may read the content; administrators may without a reason. */
function reasonFor(product: ProductForReader, caller: Caller): Reason {
  if (product.authorId === userIdOf(caller)) return "author";
  return product.entitled ? "purchased" : "none";
}

/** Published products are everybody's to see; others are their author's, their buyers' and an admin's. */
export function isVisible(product: ProductForReader, caller: Caller): boolean {
  const reason = reasonFor(product, caller);
  if (product.status === "deleted") return reason === "purchased" || isAdmin(caller);
  return product.status === "published" || reason !== "none" || isAdmin(caller);
}

function detailFor(ctx: Context, product: ProductForReader, caller: Caller): ProductDetail {
  const reason = reasonFor(product, caller);
  const mayRead = reason !== "none" || isAdmin(caller);
  const gallery = product.images.map((image) => imageOf(ctx, image));
  return {
    ...sharedFields(product),
    author: { ...authorOf(product), bio: product.authorBio },
    content: mayRead ? product.content : null,
    contentFormat: product.contentFormat,
    contentPreview: previewOf(product.preview, product.content),
    variables: product.variables,
    models: product.models,
    requirements: product.requirements,
    features: product.features,
    version: product.version,
    changelog: product.changelog,
    files: mayRead && isMember(caller) ? filesFor(ctx, product, caller) : null,
    images: gallery.map(({ url }) => url),
    gallery,
    stats: {
      views: product.views,
      purchases: product.purchases,
      rating: averageRating(product.ratingSum, product.ratingCount),
      reviews: product.ratingCount,
    },
    refundDays: product.refundDays,
    access: {
      owned: reason === "purchased",
      reason,
      revealForfeitsInstantRefund: reason === "purchased" && product.usedAt === null,
    },
  };
}

/** What its author can change, and what this caller may see of it; counters are no part of it. */
export function tagFor(product: ProductForReader, caller: Caller): string {
  const reason = reasonFor(product, caller);
  const sight = reason === "none" && isAdmin(caller) ? "admin" : reason;
  return `"${product.revision}-${sight}${product.usedAt ? "-used" : ""}"`;
}

/** The links to files end: an answer that shows some is another one when they do. */
function linksTag(ctx: Context, { files }: ProductDetail): string {
  return files && files.length > 0 ? `~${linksUntil(ctx.now()).getTime() / 1000}` : "";
}

/** A change is made from a state, whichever links it was shown with. */
export const withoutLinks = (ifMatch: string) => ifMatch.replace(/~\d+"/g, '"');

export function answerWith(ctx: Context, product: ProductForReader, caller: Caller): Answer<ProductDetail> {
  const detail = detailFor(ctx, product, caller);
  return new Answer(detail, { etag: tagFor(product, caller).replace(/"$/, `${linksTag(ctx, detail)}"`) });
}

export async function readDetail(
  ctx: Context,
  caller: Caller,
  productId: string,
): Promise<Answer<ProductDetail>> {
  const id = toUuid("prod", productId);
  const product = id ? await findProductForReader(ctx, id, userIdOf(caller)) : undefined;
  if (!product || !isVisible(product, caller)) throw new ApiError("PRODUCT_NOT_FOUND");
  noteView(ctx, caller, product);
  // A buyer's first look at the content is its reveal, written before it is shown.
  if (product.entitled && product.usedAt === null && isMember(caller))
    await noteUse(ctx, caller.userId, product.id);
  return answerWith(ctx, product, caller);
}

/** A product as its runner gets it: the version of their line, and why they may run it, if they may. */
export async function findProductToRun(ctx: Context, caller: Caller, productId: string) {
  const id = toUuid("prod", productId);
  const product = id ? await findProductForReader(ctx, id, userIdOf(caller)) : undefined;
  if (!product || !isVisible(product, caller)) throw new ApiError("PRODUCT_NOT_FOUND");
  const reason = reasonFor(product, caller);
  return { ...product, reason, major: reason === "purchased" ? majorOf(product.version) : null };
}
