import { api } from "@stoa/contract";
import { type Route, streamRoute, withoutCacheChange } from "../../platform/http/route.ts";
import { isStreaming, streamExecutionEvents } from "../executions/stream-events.ts";
import { executePrompt, findMode, resumePrompt } from "./execute.ts";

export const promptRunRoutes: Route[] = [
  withoutCacheChange(
    streamRoute(api.ai.execute, (ctx, caller, { body }, facts) => executePrompt(ctx, caller, body, facts), {
      replayStream: (ctx, caller, executionId) => streamExecutionEvents(ctx, caller, executionId, null),
      findRunningStream: async (ctx, caller, executionId) =>
        (await isStreaming(ctx, caller, executionId)) ? executionId : null,
      resume: (ctx, caller, executionId, { body }, facts) =>
        resumePrompt(ctx, caller, executionId, findMode(body, facts)),
    }),
  ),
];
