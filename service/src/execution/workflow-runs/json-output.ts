import type { Context } from "../../core/context.ts";
import { formatPath } from "../../core/errors.ts";
import { type JsonSchema, validateValue } from "../../formats/workflow-definition/json-schema.ts";
import type { Message, ProviderAnswer } from "../../integrations/ai-providers/ai-provider.ts";
import { SANDBOX_LABEL } from "../../integrations/ai-providers/sandbox.ts";
import { isTooDeep, MAX_DEPTH } from "../../platform/http/json-body.ts";
import { endCall } from "../provider-keys/provider-calls.ts";
import type { Surroundings } from "./prepare-step.ts";
import { type Call, callOnce } from "./step-call.ts";
import { failed, type Outcome } from "./step-result.ts";
import type { Tally } from "./usage-total.ts";

/** Asks for JSON that fits a schema, and once more where it does not. */
export async function callForJson(
  ctx: Context,
  run: Surroundings,
  call: Call,
  schema: JsonSchema,
  tally: Tally,
): Promise<Outcome> {
  const first = await callOnce(ctx, run, call, tally);
  const read = readOutput(first.answer.output, schema);
  if (read.fits) {
    await run.calls.end(first.end);
    return { kind: "completed", output: read.value, facts: tally.facts };
  }
  // At once: the second one takes its own part of the key's limits.
  if (first.end) await endCall(ctx, first.end);
  const messages = [...call.messages, ...repairOf(first.answer, read.faults)];
  const second = await callOnce(ctx, run, { ...call, messages, opened: undefined }, tally);
  await run.calls.end(second.end);
  const again = readOutput(second.answer.output, schema);
  if (again.fits) return { kind: "completed", output: again.value, facts: tally.facts };
  return failed("OUTPUT_SCHEMA_MISMATCH", "The provider's answer is no JSON that fits the step's schema.", {
    isFinal: false,
    facts: tally.facts,
  });
}

type Read = { fits: true; value: unknown } | { fits: false; faults: string[] };

/** Without the fence that some models put around JSON. By hand, because the text may be megabytes of anything. */
function unfenced(text: string): string {
  const end = text.indexOf("\n");
  const isFenced = end !== -1 && text.endsWith("\n```") && FENCES.has(text.slice(0, end).trim());
  return isFenced ? text.slice(end, -"```".length) : text;
}

const FENCES: ReadonlySet<string> = new Set(["```", "```json"]);

function readOutput(text: string, schema: JsonSchema): Read {
  const bare = text.startsWith(SANDBOX_LABEL) ? text.slice(SANDBOX_LABEL.length) : text;
  if (isTooDeep(Buffer.from(bare)))
    return { fits: false, faults: [`It is nested deeper than ${MAX_DEPTH} levels.`] };
  let value: unknown;
  try {
    value = JSON.parse(unfenced(bare.trim()));
  } catch {
    return { fits: false, faults: ["It is no JSON."] };
  }
  const faults = validateValue(schema, value);
  if (faults.length === 0) return { fits: true, value };
  return {
    fits: false,
    faults: faults.map(({ path, reason }) => `${formatPath(["answer", ...path])}: ${reason}`),
  };
}

const repairOf = ({ output }: ProviderAnswer, faults: string[]): Message[] => [
  { role: "assistant", content: output },
  {
    role: "user",
    content: `That cannot be used:\n${faults.slice(0, 20).join("\n")}\nAnswer again with the JSON alone, mended, and no other words.`,
  },
];
