import { api } from "@stoa/contract";
import { leavingMemory, type Route, streamRoute } from "../../platform/http/route.ts";
import type { ExecutionKinds } from "../executions/kinds.ts";
import { runsAsStream, streamExecution } from "../executions/stream-events.ts";
import { executePrompt, modeOf, resumePrompt } from "./execute.ts";

export const promptRunRoutes = (kinds: ExecutionKinds): Route[] => [
  leavingMemory(
    streamRoute(api.ai.execute, (ctx, caller, { body }, facts) => executePrompt(ctx, caller, body, facts), {
      again: (ctx, caller, executionId) => streamExecution(ctx, caller, executionId, null, kinds),
      join: async (ctx, caller, executionId) =>
        (await runsAsStream(ctx, caller, executionId)) ? executionId : null,
      resume: (ctx, caller, executionId, { body }, facts) =>
        resumePrompt(ctx, caller, executionId, modeOf(body, facts)),
    }),
  ),
];
