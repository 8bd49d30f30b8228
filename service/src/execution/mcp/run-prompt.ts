import type { CallToolResult } from "@modelcontextprotocol/server";
import { api, type ExecutionResult } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { readEach } from "../../core/read-each.ts";
import { required } from "../../core/required.ts";
import { EventStreamResponse } from "../../platform/http/route.ts";
import { parseNew } from "../../platform/http/validate.ts";
import { findDefaultKey } from "../prompt-runs/default-key.ts";
import { executePrompt } from "../prompt-runs/execute.ts";
import type { Product } from "../prompt-runs/prepare-run.ts";
import { toToolResult } from "./results.ts";
import type { ToolCall } from "./tool-call.ts";

/** The response format depends on the tool call, not on headers. */
const NO_PREFERENCES = { acceptsEvents: false, prefer: { respondAsync: false, waitSeconds: null } };

type Arguments = Record<string, unknown>;

/** Runs a prompt as `POST /ai/execute` does; the arguments are its variables. */
export async function runPromptTool(
  ctx: Context,
  caller: Member,
  product: Product,
  args: Arguments,
  call: ToolCall,
): Promise<CallToolResult> {
  const { apiKeyId, variables } = splitArguments(product, args);
  const input = parseNew(
    api.ai.execute.request.body,
    {
      productId: toId("prod", product.id),
      apiKeyId: apiKeyId ?? (await findDefaultKey(ctx, caller, product, undefined)),
      variables,
      stream: call.reportProgress !== null,
    },
    "arguments",
  );
  const facts = { ...NO_PREFERENCES, disconnectSignal: () => call.signal };
  const answer = await executePrompt(ctx, caller, input, facts);
  const result =
    answer instanceof EventStreamResponse ? await waitForResult(answer, call) : (answer as ExecutionResult);
  return toToolResult(result.output, result);
}

/** A variable of the author called apiKeyId takes precedence over the choice of a key. */
function splitArguments(
  { variables }: Product,
  args: Arguments,
): { apiKeyId?: unknown; variables: Arguments } {
  if (variables.some(({ name }) => name === "apiKeyId")) return { variables: args };
  const { apiKeyId, ...others } = args;
  return { apiKeyId, variables: others };
}

/** Reads the events of the run to its end, and reports the length of the output. */
async function waitForResult(
  { events, onEnd }: EventStreamResponse,
  { signal, reportProgress }: ToolCall,
): Promise<ExecutionResult> {
  let characters = 0;
  // TypeScript does not see the assignment in the callback, and would take the type for null.
  let result = null as ExecutionResult | null;
  try {
    await readEach(events(signal), ({ type, data }) => {
      const payload = JSON.parse(required(data, "the data of an event"));
      if (type === "execution.failed") throw new ApiError(payload.code, payload.message, payload.details);
      if (type === "execution.completed") result = payload;
      if (type !== "output.delta") return undefined;
      characters += payload.text.length;
      return reportProgress?.(characters, `${characters} characters so far`);
    });
  } finally {
    onEnd();
  }
  if (result) return result;
  throw new ApiError("INVALID_STATE", "The client disconnected, so the run was canceled.");
}
