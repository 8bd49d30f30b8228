import type { WorkflowExecution } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import type { Queries } from "../../platform/db/database.ts";
import { openTexts } from "../executions/texts.ts";
import { toUsage } from "../executions/usage.ts";
import { findWorkflowExecution, type WorkflowExecutionRow } from "./queries.ts";

export async function readWorkflowExecution(
  ctx: Context,
  db: Queries,
  userId: string,
  id: string,
): Promise<WorkflowExecution> {
  const row = await findWorkflowExecution(db, userId, id);
  if (!row) throw new ApiError("EXECUTION_NOT_FOUND");
  const { sealedTexts } = row;
  return toWorkflowExecution(
    ctx,
    id,
    row,
    sealedTexts === null ? null : openTexts(ctx, { id, userId }, sealedTexts).output,
  );
}

export function toWorkflowExecution(
  ctx: Context,
  id: string,
  row: Omit<WorkflowExecutionRow, "sealedTexts">,
  output: unknown,
): WorkflowExecution {
  const executionId = toId("exec", id);
  const path = `${ctx.links.origin()}/v1/ai/executions/${executionId}`;
  return {
    executionId,
    workflowId: toId("prod", row.productId),
    productVersion: row.productVersion,
    status: row.status,
    statusUrl: path,
    eventsUrl: `${path}/events`,
    output,
    error: row.errorCode === null ? null : { code: row.errorCode, message: row.errorMessage ?? "" },
    usage: toUsage(row),
    duration: row.durationMs === null ? null : row.durationMs / 1000,
    createdAt: row.createdAt.toISOString(),
    completedAt: row.completedAt?.toISOString() ?? null,
  };
}
