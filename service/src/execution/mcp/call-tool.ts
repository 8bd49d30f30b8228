import {
  type CallToolRequest,
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
} from "@modelcontextprotocol/server";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { parseNew } from "../../platform/http/validate.ts";
import { cancelExecution } from "../executions/cancel-execution.ts";
import { cancelEvaluationTool, evaluateTool, getEvaluationTool } from "./evaluations.ts";
import { CancelExecution, GetExecution } from "./execution-tools.ts";
import { toExecutionResult, waitForEnd } from "./executions.ts";
import { parsePromptName } from "./names.ts";
import { findProductByName } from "./products.ts";
import { toErrorResult } from "./results.ts";
import { runPromptTool } from "./run-prompt.ts";
import { runWorkflowTool } from "./run-workflow.ts";
import type { ToolCall } from "./tool-call.ts";

type Arguments = Record<string, unknown>;

/** Runs a tool call. An error becomes the result of the tool, so that the model reads the reason. */
export async function callTool(
  ctx: Context,
  caller: Member,
  { name, arguments: args = {} }: CallToolRequest["params"],
  call: ToolCall,
): Promise<CallToolResult> {
  try {
    const tool = ownTools.get(name);
    return await (tool ? tool(ctx, caller, args, call) : runProduct(ctx, caller, name, args, call));
  } catch (error) {
    if (error instanceof ApiError) return toErrorResult(error);
    throw error;
  }
}

type Tool = (ctx: Context, caller: Member, args: Arguments, call: ToolCall) => Promise<CallToolResult>;

/** Tools that belong to no product. */
const ownTools: ReadonlyMap<string, Tool> = new Map<string, Tool>([
  ["get_execution", getExecutionTool],
  ["cancel_execution", cancelExecutionTool],
  ["evaluate", evaluateTool],
  ["get_evaluation", getEvaluationTool],
  ["cancel_evaluation", cancelEvaluationTool],
]);

async function getExecutionTool(ctx: Context, caller: Member, args: Arguments, call: ToolCall) {
  const input = parseNew(GetExecution, args, "arguments");
  await waitForEnd(ctx, caller, input, call);
  return toExecutionResult(ctx, caller, input.executionId);
}

async function cancelExecutionTool(ctx: Context, caller: Member, args: Arguments) {
  const { executionId } = parseNew(CancelExecution, args, "arguments");
  await cancelExecution(ctx, caller, executionId);
  return toExecutionResult(ctx, caller, executionId);
}

async function runProduct(ctx: Context, caller: Member, name: string, args: Arguments, call: ToolCall) {
  const promptName = parsePromptName(name);
  const product = promptName === null ? undefined : await findProductByName(ctx, caller, promptName);
  if (!product) throw new ProtocolError(ProtocolErrorCode.InvalidParams, "You have no tool of this name.");
  const run = product.type === "PROMPT" ? runPromptTool : runWorkflowTool;
  return run(ctx, caller, product, args, call);
}
