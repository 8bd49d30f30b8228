import { api } from "@stoa/contract";
import { type Caller, isMember } from "../../core/context.ts";
import {
  repeatableRoute,
  resumableRoute,
  route,
  withCacheChange,
  withoutCacheChange,
} from "../../platform/http/route.ts";
import { crossOriginError } from "../../platform/http/same-origin.ts";
import { checkProduct } from "./checks.ts";
import { listSimilarProducts, readAsGuest, readDetail } from "./detail.ts";
import { scanDraft } from "./draft-scan.ts";
import { listHistory } from "./history.ts";
import { listForModerators, suspendProduct } from "./moderation.ts";
import { deleteProduct, moveProduct, resumeMove } from "./moves.ts";
import { readProductDraft, setProductDraft } from "./product-drafts.ts";
import { changeProduct, createProduct, toDraftResponse } from "./products.ts";
import { dismissReports, reportProduct, toDismissedResponse, toReportResponse } from "./reports.ts";
import { listProductVersions, readVersion } from "./versions.ts";

/** A draft is in no cached list, but the first product changes the role of its author, which is cached. */
const canBecomeSeller = (caller: Caller | null): boolean =>
  caller === null || !isMember(caller) || caller.role === "user";

export const productRoutes = [
  route(api.products.get, (ctx, caller, { params, query }, request) =>
    request.isCrossSiteNavigation
      ? readAsGuest(ctx, params.productId)
      : readDetail(ctx, caller, params.productId, {
          userAgent: request.source.userAgent,
          isPrefetch: request.isPrefetch,
          isHead: request.isHead,
          hasContent: query.content,
        }),
  ),
  route(api.products.similar, (ctx, caller, { params, query }) =>
    listSimilarProducts(ctx, caller, params.productId, query),
  ),
  resumableRoute(
    api.products.report,
    (ctx, caller, { params, body }) => reportProduct(ctx, caller, params.productId, body),
    async (_ctx, _caller, productId) => toReportResponse(productId),
  ),
  route(api.admin.products.checks, (ctx, _caller, { params }) => checkProduct(ctx, params.productId)),
  resumableRoute(
    api.admin.products.dismissReports,
    (ctx, caller, { params }, { source }) => dismissReports(ctx, { caller, source }, params.productId),
    async (_ctx, _caller, productId) => toDismissedResponse(productId),
  ),
  withCacheChange(
    canBecomeSeller,
    resumableRoute(
      api.products.create,
      (ctx, caller, { body }) => createProduct(ctx, caller, body),
      async (_ctx, _caller, productId, { body }) => toDraftResponse(productId, body),
    ),
  ),
  route(api.products.update, (ctx, caller, { params, body }, facts) =>
    changeProduct(ctx, caller, params.productId, body, facts),
  ),
  route(api.products.draft.get, (ctx, caller, { params }) => readProductDraft(ctx, caller, params.productId)),
  withoutCacheChange(
    route(api.products.draft.set, (ctx, caller, { params, body }, { ifMatch }) =>
      setProductDraft(ctx, caller, params.productId, { ...body, ifMatch }),
    ),
  ),
  withoutCacheChange(
    repeatableRoute(
      "It writes nothing.",
      route(api.products.scan, (ctx, caller, { params, body }) =>
        scanDraft(ctx, caller, params.productId, body),
      ),
    ),
  ),
  resumableRoute(
    api.products.publish,
    (ctx, caller, { params }, { source }) =>
      moveProduct(ctx, caller, params.productId, "publish", { source }),
    resumeMove,
  ),
  resumableRoute(
    api.products.withdraw,
    (ctx, caller, { params }, { source }) =>
      moveProduct(ctx, caller, params.productId, "withdraw", { source }),
    resumeMove,
  ),
  resumableRoute(
    api.products.unpublish,
    (ctx, caller, { params }, { source }) =>
      moveProduct(ctx, caller, params.productId, "unpublish", { source }),
    resumeMove,
  ),
  route(api.products.delete, (ctx, caller, { params }, { source }) =>
    deleteProduct(ctx, caller, params.productId, source),
  ),
  route(api.products.history, (ctx, caller, { params, query }) =>
    listHistory(ctx, caller, params.productId, query),
  ),
  route(api.products.versions.list, (ctx, caller, { params, query }) =>
    listProductVersions(ctx, caller, params.productId, query),
  ),
  route(api.products.versions.get, (ctx, caller, { params }, { isHead, isCrossSiteNavigation }) => {
    if (isCrossSiteNavigation) throw crossOriginError();
    return readVersion(ctx, caller, params.productId, { version: params.version, isHead });
  }),
  route(api.admin.products.list, (ctx, _caller, { query }) => listForModerators(ctx, query)),
  resumableRoute(
    api.admin.products.approve,
    (ctx, caller, { params }, { ifMatch, source }) =>
      moveProduct(ctx, caller, params.productId, "approve", { ifMatch, source }),
    resumeMove,
  ),
  resumableRoute(
    api.admin.products.reject,
    (ctx, caller, { params, body }, { ifMatch, source }) =>
      moveProduct(ctx, caller, params.productId, "reject", { ifMatch, source, reason: body.reason }),
    resumeMove,
  ),
  resumableRoute(
    api.admin.products.suspend,
    (ctx, caller, { params, body }, facts) => suspendProduct(ctx, caller, params.productId, body, facts),
    resumeMove,
  ),
  resumableRoute(
    api.admin.products.reinstate,
    (ctx, caller, { params }, { ifMatch, source }) =>
      moveProduct(ctx, caller, params.productId, "reinstate", { ifMatch, source }),
    resumeMove,
  ),
];
