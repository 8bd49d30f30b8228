import { api } from "@stoa/contract";
import { repeatableRoute, resumableRoute, route, withoutCacheChange } from "../../platform/http/route.ts";
import { estimateEvaluation } from "./estimate-evaluation.ts";
import {
  cancelEvaluation,
  createEvaluation,
  listEvaluations,
  readEvaluation,
  readEvaluationSummary,
  resumeEvaluation,
} from "./evaluations.ts";
import { readProof } from "./proof.ts";
import { disableReEvaluation, readReEvaluation, setReEvaluation } from "./re-evaluations.ts";
import { readScoreCard } from "./score-card.ts";

export const evaluationRoutes = [
  withoutCacheChange(
    resumableRoute(
      api.evaluations.create,
      (ctx, caller, { params, body }) => createEvaluation(ctx, caller, params.productId, body),
      resumeEvaluation,
    ),
  ),
  withoutCacheChange(
    repeatableRoute(
      "It writes nothing.",
      route(api.evaluations.estimate, (ctx, caller, { params, body }) =>
        estimateEvaluation(ctx, caller, params.productId, body),
      ),
    ),
  ),
  route(api.evaluations.list, (ctx, caller, { params, query }) =>
    listEvaluations(ctx, caller, params.productId, query),
  ),
  route(api.products.scoreCard.get, (ctx, caller, { params }) =>
    readScoreCard(ctx, caller, params.productId),
  ),
  route(api.evaluations.get, (ctx, caller, { params }) => readEvaluation(ctx, caller, params.evaluationId)),
  route(api.evaluations.proof, (ctx, caller, { params }) => readProof(ctx, caller, params.evaluationId)),
  withoutCacheChange(
    resumableRoute(
      api.evaluations.cancel,
      (ctx, caller, { params }) => cancelEvaluation(ctx, caller, params.evaluationId),
      readEvaluationSummary,
    ),
  ),
  route(api.reEvaluations.get, (ctx, caller, { params }) => readReEvaluation(ctx, caller, params.productId)),
  withoutCacheChange(
    route(api.reEvaluations.set, (ctx, caller, { params, body }) =>
      setReEvaluation(ctx, caller, params.productId, body),
    ),
  ),
  withoutCacheChange(
    route(api.reEvaluations.delete, (ctx, caller, { params }) =>
      disableReEvaluation(ctx, caller, params.productId),
    ),
  ),
];
