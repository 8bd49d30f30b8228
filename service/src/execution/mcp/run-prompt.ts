import type { CallToolResult } from "@modelcontextprotocol/server";
import { api, type ExecutionResult } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { EventStreamResponse } from "../../platform/http/route.ts";
import { parseNew } from "../../platform/http/validate.ts";
import { defaultKeyFor } from "../prompt-runs/default-key.ts";
import { executePrompt } from "../prompt-runs/execute.ts";
import type { Product } from "../prompt-runs/prepare-run.ts";
import { resultOf } from "./results.ts";
import type { Call } from "./tool-call.ts";

/** Answered in the words of this door, so that nothing but the call says how. */
const asTheCallSays = { acceptsEvents: false, prefer: { respondAsync: false, waitSeconds: null } };

type Arguments = Record<string, unknown>;

/** Runs a prompt once, as `POST /ai/execute` does; the arguments are its variables. */
export async function runPrompt(
  ctx: Context,
  caller: Member,
  product: Product,
  given: Arguments,
  call: Call,
): Promise<CallToolResult> {
  const { apiKeyId, variables } = apart(product, given);
  const wish = parseNew(
    api.ai.execute.body!,
    {
      productId: toId("prod", product.id),
      apiKeyId: apiKeyId ?? (await defaultKeyFor(ctx, caller, product, undefined)),
      variables,
      stream: call.tell !== null,
    },
    "arguments",
  );
  const facts = { ...asTheCallSays, disconnectSignal: () => call.signal };
  const answer = await executePrompt(ctx, caller, wish, facts);
  const result =
    answer instanceof EventStreamResponse ? await heardOut(answer, call) : (answer as ExecutionResult);
  return resultOf(result.output, result);
}

/** A variable called apiKeyId is the author's. */
function apart({ variables }: Product, given: Arguments): { apiKeyId?: unknown; variables: Arguments } {
  if (variables.some(({ name }) => name === "apiKeyId")) return { variables: given };
  const { apiKeyId, ...others } = given;
  return { apiKeyId, variables: others };
}

/** Follows the run to its end, and tells how long its output is meanwhile. */
async function heardOut(
  { events, onEnd: ended }: EventStreamResponse,
  { signal, tell }: Call,
): Promise<ExecutionResult> {
  let characters = 0;
  try {
    for await (const { type, data } of events(signal)) {
      const told = JSON.parse(data!);
      if (type === "execution.completed") return told;
      if (type === "execution.failed") throw new ApiError(told.code, told.message, told.details);
      if (type !== "output.delta") continue;
      characters += told.text.length;
      await tell?.(characters, `${characters} characters so far`);
    }
  } finally {
    ended();
  }
  throw new ApiError("INVALID_STATE", "Nobody waited for the run, so it was given up.");
}
