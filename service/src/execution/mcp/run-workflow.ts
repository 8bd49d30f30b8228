import type { CallToolResult } from "@modelcontextprotocol/server";
import { api } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import { parseNew } from "../../platform/http/validate.ts";
import type { Product } from "../prompt-runs/prepare-run.ts";
import { defaultKeysFor } from "../workflow-runs/default-keys.ts";
import { executeWorkflow } from "../workflow-runs/execute-workflow.ts";
import { asRun, awaitEnd, giveUp, toResult } from "./executions.ts";
import type { Call } from "./tool-call.ts";

type Arguments = Record<string, unknown>;

/** Runs a workflow as `POST /ai/workflows/{id}/execute` does, and waits for it a while; the arguments are its input. */
export async function runWorkflow(
  ctx: Context,
  caller: Member,
  product: Product,
  given: Arguments,
  call: Call,
): Promise<CallToolResult> {
  const { apiKeys, input } = apart(product, given);
  const wish = parseNew(
    api.ai.executeWorkflow.body!,
    { input, ...(apiKeys !== undefined && { apiKeys }) },
    "arguments",
  );
  wish.apiKeys = { ...(await defaultKeysFor(ctx, caller, product.content)), ...wish.apiKeys };
  const { data } = await executeWorkflow(ctx, caller, toId("prod", product.id), wish, {
    respondAsync: false,
    waitSeconds: null,
  });
  await awaitEnd(ctx, caller, data, call);
  if (call.signal.aborted && !ctx.shutdown.aborted) await giveUp(ctx, caller, data.executionId);
  return asRun(await toResult(ctx, caller, data.executionId));
}

/** An input called apiKeys is the author's. */
function apart({ content }: Product, given: Arguments): { apiKeys?: unknown; input: Arguments } {
  const { input } = Workflow.parse(JSON.parse(content));
  if (Object.hasOwn(input.properties ?? {}, "apiKeys")) return { input: given };
  const { apiKeys, ...others } = given;
  return { apiKeys, input: others };
}
