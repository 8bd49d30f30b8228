import { api } from "@stoa/contract";
import { type Route, route, streamRoute, withoutCacheChange } from "../../platform/http/route.ts";
import { createCompletion, joinCompletion, replayCompletion, resumeCompletion } from "./completions.ts";
import { listModels, readModel } from "./models.ts";

export const openAiRoutes: Route[] = [
  withoutCacheChange(
    streamRoute(
      api.openai.completions.create,
      (ctx, caller, { body }, facts) => createCompletion(ctx, caller, body, facts),
      {
        replayStream: (ctx, caller, name) => replayCompletion(ctx, caller, name),
        findRunningStream: (ctx, caller, executionId, { body }) =>
          joinCompletion(ctx, caller, executionId, body),
        resume: (ctx, caller, executionId, { body }) => resumeCompletion(ctx, caller, executionId, body),
      },
    ),
  ),
  route(api.openai.models.list, (ctx, caller) => listModels(ctx, caller)),
  route(api.openai.models.get, (ctx, caller, { params }) => readModel(ctx, caller, params.productId)),
];
