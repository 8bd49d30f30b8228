import type { ModeratedProduct, ProductStatus, SuspendProduct } from "@stoa/contract";
import { toUserId } from "../../accounts/people/users.ts";
import type { Context, SessionCaller } from "../../core/context.ts";
import { invalidRequest } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { EMPTY_PAGE, type Page, type Paging } from "../../platform/db/paging.ts";
import type { RequestInfo } from "../../platform/http/route.ts";
import { moderationOf } from "./detail.ts";
import { moveActions, toMove } from "./history.ts";
import { listLastMoves, listModerated, type ModeratedRow } from "./moderation-queries.ts";
import { moveProduct } from "./moves.ts";
import { listOpenReports, type OpenReport } from "./report-queries.ts";

type Facts = Pick<RequestInfo, "ifMatch" | "source">;

export function suspendProduct(
  ctx: Context,
  caller: SessionCaller,
  productId: string,
  { reasonCode, reason }: SuspendProduct,
  facts: Facts,
) {
  if (reasonCode === "other" && !reason) throw invalidRequest("reason", "is needed where the code is other");
  return moveProduct(ctx, caller, productId, "suspend", { ...facts, reasonCode, reason: reason ?? null });
}

const SHOWN_MOVES = 10;
const SHOWN_REPORTS = 20;

interface ModerationQuery extends Paging {
  status?: ProductStatus | undefined;
  author?: string | undefined;
  search?: string | undefined;
  order: "newest" | "oldest";
  reported: boolean;
}

export async function listForModerators(
  ctx: Context,
  { author, ...query }: ModerationQuery,
): Promise<Page<ModeratedProduct>> {
  const authorId = author === undefined ? undefined : toUuid("usr", author);
  if (authorId === null) return EMPTY_PAGE;
  const id = (query.search && toUuid("prod", query.search)) || undefined;
  const { items, ...rest } = await listModerated(ctx.db, { ...query, id, authorId });
  const products = items.map((row) => ({ productId: toId("prod", row.id), authorId: row.authorId }));
  const moves = await listLastMoves(ctx.db, products, { deeds: moveActions, most: SHOWN_MOVES });
  const movesByProduct = Map.groupBy(moves, ({ productId }) => productId);
  const ids = items.map(({ id }) => id);
  const reports = await listOpenReports(ctx.db, ids, SHOWN_REPORTS);
  const reportsByProduct = Map.groupBy(reports, ({ productId }) => productId);
  return {
    ...rest,
    items: items.map((row) => ({
      ...toModerated(row),
      ...toReports(reportsByProduct.get(row.id) ?? []),
      history: (movesByProduct.get(toId("prod", row.id)) ?? []).map(toMove),
    })),
  };
}

const toReports = (reports: OpenReport[]): Pick<ModeratedProduct, "reports" | "openReports"> => ({
  reports: reports.map(({ reporterId, reporterName, reasonCode, comment, createdAt }) => ({
    reporter: reporterId === null ? null : { id: toUserId(reporterId), name: reporterName ?? "" },
    reasonCode,
    comment,
    createdAt: createdAt.toISOString(),
  })),
  openReports: reports[0]?.openReports ?? 0,
});

const toModerated = (row: ModeratedRow): Omit<ModeratedProduct, "history" | "reports" | "openReports"> => ({
  id: toId("prod", row.id),
  title: row.title,
  type: row.type,
  status: row.status,
  statusSince: row.movedAt.toISOString(),
  category: row.category,
  price: toDecimal(row.priceMinor, row.currency),
  currency: row.currency,
  version: row.version,
  seller: {
    id: toUserId(row.authorId),
    name: row.sellerName,
    email: row.sellerEmail,
    verified: row.sellerVerified,
    bannedAt: row.sellerBannedAt?.toISOString() ?? null,
    products: row.sellerProducts,
  },
  moderation: moderationOf(row),
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString(),
  firstPublishedAt: row.firstPublishedAt?.toISOString() ?? null,
});
