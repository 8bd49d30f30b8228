import {
  type CallToolRequest,
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
} from "@modelcontextprotocol/server";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { parseNew } from "../../platform/http/validate.ts";
import { CancelExecution, GetExecution } from "./execution-tools.ts";
import { awaitEnd, giveUp, toResult } from "./executions.ts";
import { promptNameIn } from "./names.ts";
import { findNamed } from "./products.ts";
import { refusalOf } from "./results.ts";
import { runPrompt } from "./run-prompt.ts";
import { runWorkflow } from "./run-workflow.ts";
import type { Call } from "./tool-call.ts";

type Arguments = Record<string, unknown>;

/** Carries a tool's call out. What goes wrong with it is its result, so that the model reads why. */
export async function callTool(
  ctx: Context,
  caller: Member,
  { name, arguments: given = {} }: CallToolRequest["params"],
  call: Call,
): Promise<CallToolResult> {
  try {
    if (name === "get_execution") return await getExecution(ctx, caller, given, call);
    if (name === "cancel_execution") return await cancelExecution(ctx, caller, given);
    return await runProduct(ctx, caller, name, given, call);
  } catch (error) {
    if (error instanceof ApiError) return refusalOf(error);
    throw error;
  }
}

async function getExecution(ctx: Context, caller: Member, given: Arguments, call: Call) {
  const wish = parseNew(GetExecution, given, "arguments");
  await awaitEnd(ctx, caller, wish, call);
  return toResult(ctx, caller, wish.executionId);
}

async function cancelExecution(ctx: Context, caller: Member, given: Arguments) {
  const { executionId } = parseNew(CancelExecution, given, "arguments");
  await giveUp(ctx, caller, executionId);
  return toResult(ctx, caller, executionId);
}

async function runProduct(ctx: Context, caller: Member, name: string, given: Arguments, call: Call) {
  const promptName = promptNameIn(name);
  const product = promptName === null ? undefined : await findNamed(ctx, caller, promptName);
  if (!product) throw new ProtocolError(ProtocolErrorCode.InvalidParams, "You have no tool of this name.");
  const run = product.type === "PROMPT" ? runPrompt : runWorkflow;
  return run(ctx, caller, product, given, call);
}
