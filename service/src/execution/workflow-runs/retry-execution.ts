import type { WorkflowExecution } from "@stoa/contract";
import { findProductToRun } from "../../catalog/products/detail.ts";
import type { Context, Member } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import type { PreferHeader } from "../../platform/http/prefer.ts";
import type { DataResponse } from "../../platform/http/route.ts";
import { mustFindExecution } from "../executions/executions.ts";
import { mustBeEntitled } from "../prompt-runs/prepare-run.ts";
import { engine } from "./engine.ts";
import { toRunAnswer } from "./execute-workflow.ts";

/** Repeats the failed and canceled steps of a run; completed steps stay as they are. */
export async function retryExecution(
  ctx: Context,
  caller: Member,
  executionId: string,
  prefer: PreferHeader,
): Promise<DataResponse<WorkflowExecution>> {
  const { id, type, productId } = await mustFindExecution(ctx, caller, executionId);
  if (type !== "WORKFLOW") throw ruleViolation("executionId", "is of a prompt: run that again");
  mustBeEntitled(await findProductToRun(ctx, caller, toId("prod", productId)));
  if (!(await engine.retry(ctx, { id, userId: caller.userId })))
    throw await notRetryable(ctx, caller, executionId);
  return toRunAnswer(ctx, caller, id, prefer);
}

async function notRetryable(ctx: Context, caller: Member, executionId: string): Promise<ApiError> {
  const { status } = await mustFindExecution(ctx, caller, executionId);
  return new ApiError("INVALID_STATE", "Only what failed or was canceled can be retried.", {
    current: status,
    allowed: ["failed", "canceled"],
  });
}
