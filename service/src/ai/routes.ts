import { api } from "@stoa/contract";
import { leavingMemory, type Route, streamRoute } from "../http/route.ts";
import { runsAsStream, streamExecution } from "./events.ts";
import { executePrompt, modeOf, resumePrompt } from "./execute.ts";
import type { ExecutionKinds } from "./kinds.ts";

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
