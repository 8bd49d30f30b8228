import type { CallToolResult } from "@modelcontextprotocol/server";
import { api } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import { parseNew } from "../../platform/http/validate.ts";
import { cancelExecution } from "../executions/cancel-execution.ts";
import type { Product } from "../prompt-runs/prepare-run.ts";
import { findDefaultKeys } from "../workflow-runs/default-keys.ts";
import { executeWorkflow } from "../workflow-runs/execute-workflow.ts";
import { markFailedRun, toExecutionResult, waitForEnd } from "./executions.ts";
import type { ToolCall } from "./tool-call.ts";

type Arguments = Record<string, unknown>;

/** Runs a workflow as `POST /ai/workflows/{id}/execute` does, and waits a while for its end. The arguments are its input. */
export async function runWorkflowTool(
  ctx: Context,
  caller: Member,
  product: Product,
  args: Arguments,
  call: ToolCall,
): Promise<CallToolResult> {
  const { apiKeys, input } = splitArguments(product, args);
  const request = parseNew(
    api.ai.workflows.execute.request.body,
    { input, ...(apiKeys !== undefined && { apiKeys }) },
    "arguments",
  );
  request.apiKeys = { ...(await findDefaultKeys(ctx, caller, product.content)), ...request.apiKeys };
  const { data } = await executeWorkflow(ctx, caller, toId("prod", product.id), request, {
    respondAsync: false,
    waitSeconds: null,
  });
  await waitForEnd(ctx, caller, data, call);
  if (call.signal.aborted && !ctx.shutdown.aborted) await cancelExecution(ctx, caller, data.executionId);
  return markFailedRun(await toExecutionResult(ctx, caller, data.executionId));
}

/** An input of the author called apiKeys takes precedence over the choice of keys. */
function splitArguments({ content }: Product, args: Arguments): { apiKeys?: unknown; input: Arguments } {
  const { input } = Workflow.parse(JSON.parse(content));
  if (Object.hasOwn(input.properties ?? {}, "apiKeys")) return { input: args };
  const { apiKeys, ...others } = args;
  return { apiKeys, input: others };
}
