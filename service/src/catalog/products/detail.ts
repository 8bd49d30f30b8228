import type { ProductDetail } from "@stoa/contract";
import { type Caller, type Context, isMember } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toUuid } from "../../core/ids.ts";
import { isAdmin } from "../../platform/http/authenticate.ts";
import { mustMatch } from "../../platform/http/conditional.ts";
import { DataResponse } from "../../platform/http/route.ts";
import { majorOf, noteUse } from "../entitlements/entitlements.ts";
import { authorOf, averageRating, sharedFields } from "../search/card.ts";
import { noteView, type Visit } from "../search/views.ts";
import { fileLinksUntil, filesFor, imageOf } from "./attachments.ts";
import { previewOf } from "./content.ts";
import { dependenciesFor, dependencyTag } from "./dependencies.ts";
import { findProductForReader, type ProductForReader, type Verdict } from "./queries.ts";

type Reason = ProductDetail["access"]["reason"];

const userIdOf = (caller: Caller) => (isMember(caller) ? caller.userId : null);

/** Why the caller may read the content; administrators may without a reason. */
function reasonFor(product: ProductForReader, caller: Caller): Reason {
  if (product.authorId === userIdOf(caller)) return "author";
  return product.entitled ? "purchased" : "none";
}

/** What is published, by somebody who is not banned. */
export const isOnSale = ({ status, authorBannedAt }: Pick<ProductForReader, "status" | "authorBannedAt">) =>
  status === "published" && authorBannedAt === null;

/** Products on sale are everybody's to see; others are their author's, their buyers' and an admin's. */
function isVisible(product: ProductForReader, caller: Caller): boolean {
  const reason = reasonFor(product, caller);
  if (product.status === "deleted") return reason === "purchased" || isAdmin(caller);
  return isOnSale(product) || reason !== "none" || isAdmin(caller);
}

/** A buyer keeps what they bought, whatever becomes of it, unless it does harm or is against the law. */
export const isWithheld = ({ moderationCode }: Pick<Verdict, "moderationCode">) =>
  moderationCode === "malicious" || moderationCode === "illegal";

export const withheld = ({ moderationCode }: Pick<Verdict, "moderationCode">) =>
  new ApiError("PRODUCT_UNAVAILABLE", `Moderators have withdrawn this product: it is ${moderationCode}.`, {
    source: "marketplace",
    reason: moderationCode,
  });

/** Whose eyes the product's contents and troubles are for, beside its buyers'. */
export const isKeeper = (product: ProductForReader, caller: Caller) =>
  product.authorId === userIdOf(caller) || isAdmin(caller);

/** Whether content may be shown: to its author and to admins always, to a buyer as long as it is not withheld. */
const mayReadContent = (product: ProductForReader, caller: Caller) =>
  isKeeper(product, caller) || (product.entitled && !isWithheld(product));

export const moderationOf = ({ moderationCode, moderationReason, moderatedAt }: Verdict) =>
  moderatedAt && { reasonCode: moderationCode, reason: moderationReason, at: moderatedAt.toISOString() };

/** What a referrer gets of the net price, in basis points. */
export const commissionOf = (
  product: Pick<ProductForReader, "commissionBasisPoints" | "authorsCommissionBasisPoints">,
) => product.commissionBasisPoints ?? product.authorsCommissionBasisPoints;

async function detailFor(ctx: Context, product: ProductForReader, caller: Caller): Promise<ProductDetail> {
  const reason = reasonFor(product, caller);
  const mayRead = mayReadContent(product, caller);
  const gallery = product.images.map((image) => imageOf(ctx, image));
  return {
    ...sharedFields(product),
    author: { ...authorOf(product), bio: product.authorBio },
    content: mayRead ? product.content : null,
    contentFormat: product.contentFormat,
    contentPreview: isWithheld(product) && !mayRead ? "" : previewOf(product.preview, product.content),
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
    commissionBasisPoints: commissionOf(product),
    access: {
      owned: reason === "purchased",
      reason,
      revealForfeitsInstantRefund: reason === "purchased" && mayRead && product.usedAt === null,
    },
    ...(await dependenciesFor(ctx.db, product, userIdOf(caller))),
    moderation: isKeeper(product, caller) ? moderationOf(product) : null,
  };
}

/** What its author can change, and what this caller may see of it; counters are no part of it. */
function tagFor(product: ProductForReader, caller: Caller): string {
  const reason = reasonFor(product, caller);
  const sight = reason === "none" && isAdmin(caller) ? "admin" : reason;
  return `"${product.revision}-${sight}${product.usedAt ? "-used" : ""}"`;
}

/** The links to files end: an answer that shows some is another one when they do. */
function linksTag(ctx: Context, { files }: ProductDetail): string {
  return files && files.length > 0 ? `~${fileLinksUntil(ctx.now()).getTime() / 1000}` : "";
}

/** If-Match of a change or a verdict: made from the product itself, whatever was shown beside it. */
export function mustBeAsSeen(ifMatch: string | null, product: ProductForReader, caller: Caller): void {
  mustMatch(ifMatch?.replace(/(~[\w-]+)+"/g, '"') ?? null, tagFor(product, caller));
}

export async function answerWith(
  ctx: Context,
  product: ProductForReader,
  caller: Caller,
): Promise<DataResponse<ProductDetail>> {
  const detail = await detailFor(ctx, product, caller);
  const beside = linksTag(ctx, detail) + dependencyTag(detail);
  return new DataResponse(detail, { etag: tagFor(product, caller).replace(/"$/, `${beside}"`) });
}

/** The product behind an id, as this caller sees it; what they cannot see is not there. */
export async function findVisible(
  ctx: Context,
  caller: Caller,
  productId: string,
): Promise<ProductForReader> {
  const id = toUuid("prod", productId);
  const product = id ? await findProductForReader(ctx, id, userIdOf(caller)) : undefined;
  if (!product || !isVisible(product, caller)) throw new ApiError("PRODUCT_NOT_FOUND");
  return product;
}

/** A buyer's first look at the content is its reveal, written before it is shown; answers the product as it is then. */
export async function noteReveal(
  ctx: Context,
  caller: Caller,
  product: ProductForReader,
): Promise<ProductForReader> {
  if (!product.entitled || product.usedAt !== null || !isMember(caller)) return product;
  await noteUse(ctx, caller.userId, product.id);
  return { ...product, usedAt: ctx.now() };
}

export async function readDetail(
  ctx: Context,
  caller: Caller,
  productId: string,
  { isHead, ...visit }: Visit & { isHead: boolean },
): Promise<DataResponse<ProductDetail>> {
  const product = await findVisible(ctx, caller, productId);
  if (isHead) return answerWith(ctx, product, caller);
  noteView(ctx, caller, product, visit);
  const reveals = mayReadContent(product, caller);
  return answerWith(ctx, reveals ? await noteReveal(ctx, caller, product) : product, caller);
}

/**
 * What everybody may see of a product, without a view: a link on another site must not reveal to a buyer what they bought,
 * since that ends their instant refund.
 */
export async function readAsStranger(ctx: Context, productId: string): Promise<DataResponse<ProductDetail>> {
  const stranger: Caller = { kind: "guest", guestId: "" };
  return answerWith(ctx, await findVisible(ctx, stranger, productId), stranger);
}

/** A product as its reviewers get it, with why they may read it, if they may. */
export async function findProductToReview(ctx: Context, caller: Caller, productId: string) {
  const product = await findVisible(ctx, caller, productId);
  return { ...product, reason: reasonFor(product, caller) };
}

/** A product as its runner gets it: the version of their line, and why they may run it, if they may. */
export async function findProductToRun(ctx: Context, caller: Caller, productId: string) {
  const product = await findProductToReview(ctx, caller, productId);
  const isBuyers = product.reason === "purchased";
  if (isBuyers && isWithheld(product)) throw withheld(product);
  return { ...product, major: isBuyers ? majorOf(product.version) : null };
}
