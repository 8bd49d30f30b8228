import { type JsonSchema, validateValue } from "@stoa/evaluation/json-schema";
import type { Context } from "../../core/context.ts";
import { formatPath } from "../../core/errors.ts";
import type { Message, ProviderAnswer } from "../../integrations/ai-providers/ai-provider.ts";
import { withoutSandboxLabel } from "../../integrations/ai-providers/sandbox.ts";
import { isTooDeep, MAX_DEPTH } from "../../platform/http/json-body.ts";
import { askForText, endCall } from "../provider-keys/provider-calls.ts";
import type { RunContext } from "./prepare-step.ts";
import { callProvider, type StepCall } from "./step-call.ts";
import { type StepResult, toFailedStep } from "./step-result.ts";
import type { UsageTotal } from "./usage-total.ts";

/** Requests JSON that matches a schema, and requests it once more if the answer does not match. */
export async function callForJson(
  ctx: Context,
  run: RunContext,
  call: StepCall,
  schema: JsonSchema,
  usageTotal: UsageTotal,
): Promise<StepResult> {
  const first = await callProvider(ctx, run, call, usageTotal, askForText);
  const read = parseOutput(first.answer.output, schema);
  if (read.fits) {
    await run.pendingCalls.end(first.end);
    return { kind: "completed", output: read.value, callUsage: usageTotal.callUsage };
  }
  // Written now, because the second call makes its own reservation.
  if (first.end) await endCall(ctx, first.end);
  const messages = [...call.messages, ...repairMessages(first.answer, read.faults)];
  const second = await callProvider(
    ctx,
    run,
    { ...call, messages, opened: undefined },
    usageTotal,
    askForText,
  );
  await run.pendingCalls.end(second.end);
  const again = parseOutput(second.answer.output, schema);
  if (again.fits) return { kind: "completed", output: again.value, callUsage: usageTotal.callUsage };
  return toFailedStep(
    "OUTPUT_SCHEMA_MISMATCH",
    "The provider's answer is not JSON that matches the step's schema.",
    {
      isFinal: false,
      callUsage: usageTotal.callUsage,
    },
  );
}

type ParsedOutput = { fits: true; value: unknown } | { fits: false; faults: string[] };

/** Removes the code fence that some models put around JSON. No regular expression, because the text may be megabytes long. */
function stripFence(text: string): string {
  const end = text.indexOf("\n");
  const isFenced = end !== -1 && text.endsWith("\n```") && FENCES.has(text.slice(0, end).trim());
  return isFenced ? text.slice(end, -"```".length) : text;
}

const FENCES: ReadonlySet<string> = new Set(["```", "```json"]);

function parseOutput(text: string, schema: JsonSchema): ParsedOutput {
  const unlabeled = withoutSandboxLabel(text);
  if (isTooDeep(Buffer.from(unlabeled)))
    return { fits: false, faults: [`It is nested deeper than ${MAX_DEPTH} levels.`] };
  let value: unknown;
  try {
    value = JSON.parse(stripFence(unlabeled.trim()));
  } catch {
    return { fits: false, faults: ["It is not JSON."] };
  }
  const faults = validateValue(schema, value);
  if (faults.length === 0) return { fits: true, value };
  return {
    fits: false,
    faults: faults.map(({ path, reason }) => `${formatPath(["answer", ...path])}: ${reason}`),
  };
}

const repairMessages = ({ output }: ProviderAnswer, faults: string[]): Message[] => [
  { role: "assistant", content: output },
  {
    role: "user",
    content: `That cannot be used:\n${faults.slice(0, 20).join("\n")}\nAnswer again with the corrected JSON alone, without other text.`,
  },
];
