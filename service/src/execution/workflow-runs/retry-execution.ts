import type { WorkflowExecution } from "@stoa/contract";
import { findProductToRun } from "../../catalog/products/detail.ts";
import type { Context, Member } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import type { PreferHeader } from "../../platform/http/prefer.ts";
import type { DataResponse } from "../../platform/http/route.ts";
import { mustBeEntitled } from "../prompt-runs/prepare-run.ts";
import { engine } from "./engine.ts";
import { toRunAnswer } from "./execute-workflow.ts";
import { mustFindOwnExecution } from "./steps.ts";

/** Runs on what failed or was canceled: all that came to a good end stays as it is. */
export async function retryExecution(
  ctx: Context,
  caller: Member,
  executionId: string,
  prefer: PreferHeader,
): Promise<DataResponse<WorkflowExecution>> {
  const { id, type, productId } = await mustFindOwnExecution(ctx, caller, executionId);
  if (type !== "WORKFLOW") throw ruleViolation("executionId", "is of a prompt: run that again");
  mustBeEntitled(await findProductToRun(ctx, caller, toId("prod", productId)));
  if (!(await engine.retry(ctx, { id, userId: caller.userId })))
    throw await notRetryable(ctx, caller, executionId);
  return toRunAnswer(ctx, caller, id, prefer);
}

async function notRetryable(ctx: Context, caller: Member, executionId: string): Promise<ApiError> {
  const { status } = await mustFindOwnExecution(ctx, caller, executionId);
  return new ApiError("INVALID_STATE", "Only what failed or was canceled can be retried.", {
    current: status,
    allowed: ["failed", "canceled"],
  });
}
