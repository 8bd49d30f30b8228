import type { ProductDetail } from "@stoa/contract";
import { type Caller, type Context, isMember } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toUuid } from "../../core/ids.ts";
import { isAdmin } from "../../platform/http/authenticate.ts";
import { mustMatch } from "../../platform/http/conditional.ts";
import { DataResponse } from "../../platform/http/route.ts";
import { majorOf, recordFirstUse } from "../entitlements/entitlements.ts";
import { authorOf, averageRating, sharedFields } from "../search/card.ts";
import { recordView, type Visit } from "../search/views.ts";
import { fileLinkExpiry, toProductFiles, toProductImage } from "./attachments.ts";
import { contentPreview } from "./content.ts";
import { dependencyEtag, readDependencies } from "./dependencies.ts";
import { findProductForReader, type ModerationDecision, type ProductForReader } from "./queries.ts";

type AccessReason = ProductDetail["access"]["reason"];

const userIdOf = (caller: Caller) => (isMember(caller) ? caller.userId : null);

/** Why the caller may read the content; administrators may without a reason. */
function accessReason(product: ProductForReader, caller: Caller): AccessReason {
  if (product.authorId === userIdOf(caller)) return "author";
  return product.entitled ? "purchased" : "none";
}

export const isOnSale = ({ status, authorBannedAt }: Pick<ProductForReader, "status" | "authorBannedAt">) =>
  status === "published" && authorBannedAt === null;

/** Products on sale are public. Other products are visible to their author, their buyers and administrators. */
function isVisible(product: ProductForReader, caller: Caller): boolean {
  const reason = accessReason(product, caller);
  if (product.status === "deleted") return reason === "purchased" || isAdmin(caller);
  return isOnSale(product) || reason !== "none" || isAdmin(caller);
}

/** A buyer keeps what they bought, whatever becomes of it, unless it does harm or is against the law. */
export const isWithheld = ({ moderationCode }: Pick<ModerationDecision, "moderationCode">) =>
  moderationCode === "malicious" || moderationCode === "illegal";

export const withheldError = ({ moderationCode }: Pick<ModerationDecision, "moderationCode">) =>
  new ApiError("PRODUCT_UNAVAILABLE", `Moderators have withdrawn this product: it is ${moderationCode}.`, {
    source: "marketplace",
    reason: moderationCode,
  });

export const isAuthorOrAdmin = (product: ProductForReader, caller: Caller) =>
  product.authorId === userIdOf(caller) || isAdmin(caller);

/** Whether content may be shown: to its author and to admins always, to a buyer as long as it is not withheld. */
const mayReadContent = (product: ProductForReader, caller: Caller) =>
  isAuthorOrAdmin(product, caller) || (product.entitled && !isWithheld(product));

export const moderationOf = ({ moderationCode, moderationReason, moderatedAt }: ModerationDecision) =>
  moderatedAt && { reasonCode: moderationCode, reason: moderationReason, at: moderatedAt.toISOString() };

/** What a referrer gets of the net price, in basis points. */
export const commissionOf = (
  product: Pick<ProductForReader, "commissionBasisPoints" | "authorsCommissionBasisPoints">,
) => product.commissionBasisPoints ?? product.authorsCommissionBasisPoints;

async function toDetail(ctx: Context, product: ProductForReader, caller: Caller): Promise<ProductDetail> {
  const reason = accessReason(product, caller);
  const mayRead = mayReadContent(product, caller);
  const gallery = product.images.map((image) => toProductImage(ctx, image));
  return {
    ...sharedFields(product),
    author: { ...authorOf(product), bio: product.authorBio },
    content: mayRead ? product.content : null,
    contentFormat: product.contentFormat,
    contentPreview: isWithheld(product) && !mayRead ? "" : contentPreview(product.preview, product.content),
    variables: product.variables,
    models: product.models,
    requirements: product.requirements,
    features: product.features,
    version: product.version,
    changelog: product.changelog,
    files: mayRead && isMember(caller) ? toProductFiles(ctx, product, caller) : null,
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
    ...(await readDependencies(ctx.db, product, userIdOf(caller))),
    moderation: isAuthorOrAdmin(product, caller) ? moderationOf(product) : null,
  };
}

/** What its author can change, and what this caller may see of it; counters are no part of it. */
function productEtag(product: ProductForReader, caller: Caller): string {
  const reason = accessReason(product, caller);
  const sight = reason === "none" && isAdmin(caller) ? "admin" : reason;
  return `"${product.revision}-${sight}${product.usedAt ? "-used" : ""}"`;
}

/** The links to files end: an answer that shows some is another one when they do. */
function fileLinksEtag(ctx: Context, { files }: ProductDetail): string {
  return files && files.length > 0 ? `~${fileLinkExpiry(ctx.now()).getTime() / 1000}` : "";
}

/** If-Match of a change or a verdict: made from the product itself, whatever was shown beside it. */
export function checkIfMatch(ifMatch: string | null, product: ProductForReader, caller: Caller): void {
  mustMatch(ifMatch?.replace(/(~[\w-]+)+"/g, '"') ?? null, productEtag(product, caller));
}

export async function detailResponse(
  ctx: Context,
  product: ProductForReader,
  caller: Caller,
): Promise<DataResponse<ProductDetail>> {
  const detail = await toDetail(ctx, product, caller);
  const beside = fileLinksEtag(ctx, detail) + dependencyEtag(detail);
  return new DataResponse(detail, { etag: productEtag(product, caller).replace(/"$/, `${beside}"`) });
}

/** The product behind an id, as this caller sees it; what they cannot see is not there. */
export async function findVisibleProduct(
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
export async function recordReveal(
  ctx: Context,
  caller: Caller,
  product: ProductForReader,
): Promise<ProductForReader> {
  if (!product.entitled || product.usedAt !== null || !isMember(caller)) return product;
  await recordFirstUse(ctx, caller.userId, product.id);
  return { ...product, usedAt: ctx.now() };
}

export async function readDetail(
  ctx: Context,
  caller: Caller,
  productId: string,
  { isHead, ...visit }: Visit & { isHead: boolean },
): Promise<DataResponse<ProductDetail>> {
  const product = await findVisibleProduct(ctx, caller, productId);
  if (isHead) return detailResponse(ctx, product, caller);
  recordView(ctx, caller, product, visit);
  const reveals = mayReadContent(product, caller);
  return detailResponse(ctx, reveals ? await recordReveal(ctx, caller, product) : product, caller);
}

/**
 * What everybody may see of a product, without a view: a link on another site must not reveal to a buyer what they bought,
 * since that ends their instant refund.
 */
export async function readAsGuest(ctx: Context, productId: string): Promise<DataResponse<ProductDetail>> {
  const stranger: Caller = { kind: "guest", guestId: "" };
  return detailResponse(ctx, await findVisibleProduct(ctx, stranger, productId), stranger);
}

/** A product as its reviewers get it, with why they may read it, if they may. */
export async function findProductToReview(ctx: Context, caller: Caller, productId: string) {
  const product = await findVisibleProduct(ctx, caller, productId);
  return { ...product, reason: accessReason(product, caller) };
}

/** A product as its runner gets it: the version of their line, and why they may run it, if they may. */
export async function findProductToRun(ctx: Context, caller: Caller, productId: string) {
  const product = await findProductToReview(ctx, caller, productId);
  const isBuyers = product.reason === "purchased";
  if (isBuyers && isWithheld(product)) throw withheldError(product);
  return { ...product, major: isBuyers ? majorOf(product.version) : null };
}
