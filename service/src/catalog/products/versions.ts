import { SEMANTIC_VERSION, type Version, type VersionDetail } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { mapPage, type Page, type Paging } from "../../platform/db/paging.ts";
import { majorOf } from "../entitlements/entitlements.ts";
import { toProductFiles } from "./attachments.ts";
import { findVisibleProduct, isAuthorOrAdmin, isWithheld, recordReveal, withheldError } from "./detail.ts";
import { findOneVersion, type ListedVersion, listVersions, type ProductForReader } from "./queries.ts";
import { isNewerVersion } from "./semantic-version.ts";

const isInBoughtLine = (product: ProductForReader, version: string) =>
  product.entitled && majorOf(version) === majorOf(product.version);

const toVersion = (
  product: ProductForReader,
  { version, changelog, acknowledgesRegression, createdAt }: ListedVersion,
) => ({
  version,
  changelog,
  acknowledgesRegression,
  createdAt: createdAt.toISOString(),
  current: version === product.version,
});

/** Newest first, with changelogs. An unapproved version is visible to its author and administrators only. */
export async function listProductVersions(
  ctx: Context,
  caller: Member,
  productId: string,
  paging: Paging,
): Promise<Page<Version>> {
  const product = await findVisibleProduct(ctx, caller, productId);
  const mayReadAll = isAuthorOrAdmin(product, caller);
  const page = await listVersions(ctx.db, product.id, { ...paging, released: !mayReadAll });
  return mapPage(page, (row) => ({
    ...toVersion(product, row),
    readable: mayReadAll || (isInBoughtLine(product, row.version) && !isWithheld(product)),
  }));
}

export async function readVersion(
  ctx: Context,
  caller: Member,
  productId: string,
  { version, isHead }: { version: string; isHead: boolean },
): Promise<VersionDetail> {
  const product = await findVisibleProduct(ctx, caller, productId);
  const found = SEMANTIC_VERSION.test(version)
    ? await findOneVersion(ctx.db, product.id, version)
    : undefined;
  const mayReadAll = isAuthorOrAdmin(product, caller);
  if (!found || (!mayReadAll && isUnreleased(product, version))) throw new ApiError("VERSION_NOT_FOUND");
  if (!mayReadAll) mustBeInBoughtLine(product, version);
  if (!isHead) await recordReveal(ctx, caller, product);
  const { content, contentFormat, variables, files } = found;
  return {
    ...toVersion(product, found),
    content,
    contentFormat,
    variables,
    files: toProductFiles(ctx, { id: product.id, files }, caller),
  };
}

const isUnreleased = ({ released }: ProductForReader, version: string) =>
  released === null || isNewerVersion(version, released.join("."));

function mustBeInBoughtLine(product: ProductForReader, version: string): void {
  if (!isInBoughtLine(product, version)) {
    const message = product.entitled
      ? `Your purchase covers version ${majorOf(product.version)}.x of this product.`
      : "Buy the product before you read it.";
    throw new ApiError("UNAUTHORIZED", message, { required: "purchase", reason: "purchase_required" });
  }
  if (isWithheld(product)) throw withheldError(product);
}
