import type { ProductChecks } from "@stoa/contract";
import { toUserId } from "../../accounts/people/users.ts";
import type { Context } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { ApiError } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import type { Queries } from "../../platform/db/database.ts";
import { findLookAlikes, findNearDuplicates, fingerprintProduct } from "../duplicates/duplicates.ts";
import { createTextComparison } from "../duplicates/text-similarity.ts";
import { findByTitleWords } from "../search/title-matches.ts";
import { toApprovedDetails } from "./approved-details.ts";
import {
  type CheckedProductRow,
  type ComparedRow,
  findCheckedProduct,
  findLikelyCopies,
  findReleasedVersion,
  listCompared,
  type ReleasedVersionRow,
} from "./check-queries.ts";
import { contentWarnings } from "./content-warnings.ts";
import { readScanReport } from "./product-scans.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** Registered in base.ts: the catalog does not import executions. */
    countSellerRuns: CountSellerRuns;
  }
}

/** Ended runs of all products of a seller by others. */
export type CountSellerRuns = (
  db: Queries,
  sellerId: string,
  since: Date,
) => Promise<ProductChecks["sellerRuns"]>;

const RECENT_DAYS = 30;
const CANDIDATES_EACH = 30;
const SHOWN_DUPLICATES = 5;
/** Of each text, so that 120 long ones are compared in some milliseconds. */
const COMPARED_CHARACTERS = 8_000;

/** For moderators. Drafts, too: an administrator may look at them. */
export async function checkProduct(ctx: Context, productId: string): Promise<ProductChecks> {
  const id = toUuid("prod", productId);
  const product = id ? await findCheckedProduct(ctx.db, id) : undefined;
  if (!product) throw new ApiError("PRODUCT_NOT_FOUND");
  const [released, scan, { duplicates, compared }, sellerRuns] = await Promise.all([
    findReleasedVersion(ctx.db, product.id),
    readScanReport(ctx.db, product.id),
    findDuplicates(ctx, product),
    ctx.countSellerRuns(ctx.db, product.authorId, daysAfter(ctx.now(), -RECENT_DAYS)),
  ]);
  const { content, contentFormat, variables } = product;
  const release = { productId: product.id, content, contentFormat, variables };
  return {
    warnings: contentWarnings(product),
    scan,
    approved: released ? toApproved(ctx, released) : null,
    measured: released ? await ctx.compareRelease(ctx.db, { ...release, onSale: released.version }) : [],
    sellerRuns,
    duplicates,
    compared,
  };
}

const toApproved = (
  ctx: Context,
  { createdAt, files, approvedDetails, images, ...version }: ReleasedVersionRow,
): ProductChecks["approved"] => ({
  ...version,
  files: files.map(({ id, name, size, type, sha256 }) => ({
    id: toId("file", id),
    name,
    size,
    type,
    sha256,
  })),
  createdAt: createdAt.toISOString(),
  details:
    approvedDetails === null
      ? null
      : toApprovedDetails(ctx, approvedDetails, { content: version.content, currentImages: images }),
});

async function findDuplicates(ctx: Context, product: CheckedProductRow) {
  const [copies, byTitle, [byText = []], [lookAlikes = []]] = await Promise.all([
    findLikelyCopies(ctx.db, product, CANDIDATES_EACH),
    findByTitleWords(ctx, product, CANDIDATES_EACH),
    findNearDuplicates(ctx.db, [fingerprintProduct(product)]),
    findLookAlikes(ctx.db, [{ ...product, purchases: 0 }]),
  ]);
  const similarities = new Map(byText.map(({ product: { id }, similarity }) => [id, similarity]));
  const lookAlikeIds = lookAlikes.map(({ id }) => id);
  const ids = [...new Set([...copies, ...byTitle, ...similarities.keys(), ...lookAlikeIds])].filter(
    (id) => id !== product.id,
  );
  const options = { title: product.title, characters: COMPARED_CHARACTERS };
  const rows = await listCompared(ctx.db, ids, options);
  const compareText = createTextComparison(product.content.slice(0, COMPARED_CHARACTERS));
  const duplicates = rows
    .map((row) => toDuplicate(product, row, similarities.get(row.id) ?? compareText(row.text)))
    .toSorted((a, b) => likenessOf(b) - likenessOf(a) || b.id.localeCompare(a.id))
    .slice(0, SHOWN_DUPLICATES);
  return { duplicates, compared: rows.length };
}

type Duplicate = ProductChecks["duplicates"][number];

const likenessOf = ({ titleSimilarity, textSimilarity }: Duplicate) =>
  Math.max(titleSimilarity, textSimilarity);

const toDuplicate = (product: CheckedProductRow, row: ComparedRow, textSimilarity: number): Duplicate => ({
  id: toId("prod", row.id),
  title: row.title,
  status: row.status,
  seller: { id: toUserId(row.authorId), name: row.authorName },
  isSameSeller: row.authorId === product.authorId,
  titleSimilarity: row.titleSimilarity,
  textSimilarity,
});
