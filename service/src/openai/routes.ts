import { api } from "@stoa/contract";
import { leavingMemory, type Route, route, streamRoute } from "../http/route.ts";
import { complete, completeAgain, resumeCompletion } from "./completions.ts";
import { listModels, readModel } from "./models.ts";

export const openAiRoutes: Route[] = [
  leavingMemory(
    streamRoute(
      api.openai.complete,
      (ctx, caller, { body }, facts) => complete(ctx, caller, body, facts),
      (ctx, caller, name) => completeAgain(ctx, caller, name),
      (ctx, caller, executionId, { body }) => resumeCompletion(ctx, caller, executionId, body),
    ),
  ),
  route(api.openai.models, (ctx, caller) => listModels(ctx, caller)),
  route(api.openai.model, (ctx, caller, { params }) => readModel(ctx, caller, params.productId)),
];
