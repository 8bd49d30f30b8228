import { contentPreview, type ProductDetail } from "@stoa/contract";
import { type Caller, type Context, isMember, viewOf } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toUuid } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import type { Paging } from "../../platform/db/paging.ts";
import { isAdmin } from "../../platform/http/authenticate.ts";
import { mustMatch } from "../../platform/http/conditional.ts";
import { toOwnBytes } from "../../platform/http/envelope.ts";
import { DataResponse, RawData } from "../../platform/http/route.ts";
import { majorOf, recordFirstUse } from "../entitlements/entitlements.ts";
import { authorOf, averageRating, sharedFields } from "../search/card.ts";
import { listSimilar } from "../search/similar.ts";
import { recordView, type Visit } from "../search/views.ts";
import { fileLinkExpiry, toProductFiles, toProductImage } from "./attachments.ts";
import type { ConfirmedProduct } from "./confirmation-queries.ts";
import { dependencyEtag, readDependencies } from "./dependencies.ts";
import { scanEtag, toProductScan } from "./product-scans.ts";
import { type PublicDetail, renderStats } from "./public-details.ts";
import { findProductForReader, type ModerationDecision, type ProductForReader } from "./queries.ts";
import { toSample } from "./samples.ts";
import { tryOutEtag, tryOutOf } from "./try-out-summary.ts";

type AccessReason = ProductDetail["access"]["reason"];

const userIdOf = (caller: Caller) => (isMember(caller) ? caller.userId : null);

function accessReason(product: ProductForReader, caller: Caller): AccessReason {
  if (product.authorId === userIdOf(caller)) return "author";
  return product.entitled ? "purchased" : "none";
}

export const isOnSale = ({ status, authorBannedAt }: Pick<ProductForReader, "status" | "authorBannedAt">) =>
  status === "published" && authorBannedAt === null;

/** Published products are public. Others are visible to their author, buyers and administrators. */
function isVisible(product: ProductForReader, caller: Caller): boolean {
  const reason = accessReason(product, caller);
  if (product.status === "deleted") return reason === "purchased" || isAdmin(caller);
  return isOnSale(product) || reason !== "none" || isAdmin(caller);
}

/** Buyers keep access to every product except malicious and illegal ones. */
export const isWithheld = ({ moderationCode }: Pick<ModerationDecision, "moderationCode">) =>
  moderationCode === "malicious" || moderationCode === "illegal";

export const withheldError = ({ moderationCode }: Pick<ModerationDecision, "moderationCode">) =>
  new ApiError("PRODUCT_UNAVAILABLE", `Moderators have withdrawn this product: it is ${moderationCode}.`, {
    source: "marketplace",
    reason: moderationCode,
  });

export const isAuthorOrAdmin = (product: ProductForReader, caller: Caller) =>
  product.authorId === userIdOf(caller) || isAdmin(caller);

const mayReadContent = (product: ProductForReader, caller: Caller) =>
  isAuthorOrAdmin(product, caller) || (product.entitled && !isWithheld(product));

export const moderationOf = ({ moderationCode, moderationReason, moderatedAt }: ModerationDecision) =>
  moderatedAt && { reasonCode: moderationCode, reason: moderationReason, at: moderatedAt.toISOString() };

/** A referrer's share of the net price, in basis points. */
export const commissionOf = (
  product: Pick<ProductForReader, "commissionBasisPoints" | "authorsCommissionBasisPoints">,
) => product.commissionBasisPoints ?? product.authorsCommissionBasisPoints;

const scanOf = ({ scannedAt, scannerVersion, scanBadges: badges }: ProductForReader) =>
  toProductScan(scannedAt && scannerVersion && badges ? { scannedAt, scannerVersion, badges } : null);

async function toDetail(ctx: Context, product: ProductForReader, caller: Caller): Promise<ProductDetail> {
  const reason = accessReason(product, caller);
  const mayRead = mayReadContent(product, caller);
  const gallery = product.images.map((image) => toProductImage(ctx, image));
  return {
    ...sharedFields(product),
    author: { ...authorOf(product, ctx.links.origin()), bio: product.authorBio },
    content: mayRead ? product.content : null,
    contentFormat: product.contentFormat,
    contentPreview: isWithheld(product) && !mayRead ? "" : contentPreview(product.preview, product.content),
    variables: product.variables,
    models: product.models,
    requirements: product.requirements,
    features: product.features,
    license: product.license,
    samples: isWithheld(product) && !mayRead ? [] : product.samples.map(toSample),
    version: product.version,
    changelog: product.changelog,
    files: mayRead && isMember(caller) && !viewOf(caller) ? toProductFiles(ctx, product, caller) : null,
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
    scoreCard: isWithheld(product) && !mayRead ? null : await ctx.findScoreCard(ctx, product),
    ...(await readDependencies(ctx.db, product, userIdOf(caller))),
    tryOut: isOnSale(product) ? tryOutOf(ctx, product) : null,
    moderation: isAuthorOrAdmin(product, caller) ? moderationOf(product) : null,
    scan: scanOf(product),
  };
}

/** Covers the author's fields and the caller's access. Counters are no part of it. */
function productEtag(product: ProductForReader, caller: Caller): string {
  const reason = accessReason(product, caller);
  const access = reason === "none" && isAdmin(caller) ? "admin" : reason;
  return `"${product.revision}-${access}${product.usedAt ? "-used" : ""}"`;
}

/** Changes when the links to files expire, since the response contains them. */
function fileLinksEtag(ctx: Context, { files }: ProductDetail): string {
  return files && files.length > 0 ? `~${fileLinkExpiry(ctx.now()).getTime() / 1000}` : "";
}

/** The count of real runs is no part of it, as other counters. */
const scoreCardEtag = ({ scoreCard }: ProductDetail): string =>
  scoreCard ? `~${scoreCard.evaluationId}-${scoreCard.evaluations}` : "";

/** Compares only the product's part of the ETag, not links and dependencies. */
export function checkIfMatch(ifMatch: string | null, product: ProductForReader, caller: Caller): void {
  mustMatch(ifMatch?.replace(/(~[\w-]+)+"/g, '"') ?? null, productEtag(product, caller));
}

/** A part of the ETag when the content was not requested. */
const NO_CONTENT = "~no-content";

export async function detailResponse(
  ctx: Context,
  product: ProductForReader,
  caller: Caller,
  { hasContent = true } = {},
): Promise<DataResponse<ProductDetail>> {
  const whole = await toDetail(ctx, product, caller);
  const detail = hasContent ? whole : { ...whole, content: null };
  const suffix =
    fileLinksEtag(ctx, detail) +
    dependencyEtag(detail) +
    scoreCardEtag(detail) +
    tryOutEtag(detail) +
    scanEtag(detail.scan) +
    (hasContent ? "" : NO_CONTENT);
  return new DataResponse(detail, { etag: productEtag(product, caller).replace(/"$/, `${suffix}"`) });
}

/** Throws PRODUCT_NOT_FOUND for a product that the caller may not see. */
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

/** Records a buyer's first read of the content before the response, and returns the updated product. */
export async function recordReveal(
  ctx: Context,
  caller: Caller,
  product: ProductForReader,
): Promise<ProductForReader> {
  if (!product.entitled || product.usedAt !== null || !isMember(caller)) return product;
  await recordFirstUse(ctx, caller.userId, product.id);
  return { ...product, usedAt: ctx.now() };
}

type DetailRequest = Visit & { isHead: boolean; hasContent: boolean };

export async function readDetail(
  ctx: Context,
  caller: Caller,
  productId: string,
  request: DetailRequest,
): Promise<DataResponse<ProductDetail | RawData>> {
  const id = toUuid("prod", productId);
  const confirmed = id && (await ctx.publicDetails.confirm(ctx, caller, id));
  if (!confirmed) return readUncachedDetail(ctx, caller, productId, request);
  const known = ctx.publicDetails.find(confirmed);
  if (known) {
    if (!request.isHead) recordView(ctx, caller, confirmed, request);
    return publicResponse(known, confirmed, request);
  }
  const response = await readUncachedDetail(ctx, caller, productId, request);
  const detail = toPublicDetail(response);
  if (detail) ctx.publicDetails.store(confirmed, detail);
  return response;
}

/** null: it is not what strangers read, or has more than the row versions cover. */
function toPublicDetail({ data, etag }: DataResponse<ProductDetail>): PublicDetail | null {
  const { access, dependencies, scoreCard, tryOut } = data;
  if (access.reason !== "none" || dependencies.length > 0 || scoreCard || tryOut) return null;
  const fields = Object.entries(data);
  const at = fields.findIndex(([name]) => name === "stats");
  const before = JSON.stringify(Object.fromEntries(fields.slice(0, at)));
  const after = JSON.stringify(Object.fromEntries(fields.slice(at + 1)));
  return {
    beforeStats: toOwnBytes(`${before.slice(0, -1)},"stats":`),
    afterStats: toOwnBytes(`,${after.slice(1)}`),
    etag: required(etag, "the ETag of a detail").replace(NO_CONTENT, ""),
  };
}

function publicResponse(
  { beforeStats, afterStats, etag }: PublicDetail,
  confirmed: ConfirmedProduct,
  { hasContent }: DetailRequest,
): DataResponse<RawData> {
  const data = new RawData([beforeStats, Buffer.from(renderStats(confirmed)), afterStats]);
  return new DataResponse(data, { etag: hasContent ? etag : etag.replace(/"$/, `${NO_CONTENT}"`) });
}

async function readUncachedDetail(
  ctx: Context,
  caller: Caller,
  productId: string,
  { isHead, hasContent, ...visit }: DetailRequest,
): Promise<DataResponse<ProductDetail>> {
  const product = await findVisibleProduct(ctx, caller, productId);
  if (isHead) return detailResponse(ctx, product, caller, { hasContent });
  if (viewOf(caller)) return detailResponse(ctx, product, caller, { hasContent: false });
  recordView(ctx, caller, product, visit);
  if (!hasContent) return detailResponse(ctx, product, caller, { hasContent });
  const reveals = mayReadContent(product, caller);
  return detailResponse(ctx, reveals ? await recordReveal(ctx, caller, product) : product, caller);
}

/**
 * The public view, without counting a view. A link on another site must not reveal the content to a buyer, since that
 * ends the instant refund.
 */
export async function readAsGuest(ctx: Context, productId: string): Promise<DataResponse<ProductDetail>> {
  const stranger: Caller = { kind: "guest", guestId: "" };
  return detailResponse(ctx, await findVisibleProduct(ctx, stranger, productId), stranger);
}

export async function listSimilarProducts(ctx: Context, caller: Caller, productId: string, paging: Paging) {
  const { id } = await findVisibleProduct(ctx, caller, productId);
  return listSimilar(ctx, id, paging);
}

export async function findProductToReview(ctx: Context, caller: Caller, productId: string) {
  const product = await findVisibleProduct(ctx, caller, productId);
  return { ...product, reason: accessReason(product, caller) };
}

export async function findProductToRun(ctx: Context, caller: Caller, productId: string) {
  const product = await findProductToReview(ctx, caller, productId);
  const isBuyers = product.reason === "purchased";
  if (isBuyers && isWithheld(product)) throw withheldError(product);
  return { ...product, major: isBuyers ? majorOf(product.version) : null };
}
