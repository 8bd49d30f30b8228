import { createHash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { QUESTION_COUNT, QUESTION_INSTRUCTIONS } from "@stoa/evaluation/embedding-assertions";
import { JUDGE_INSTRUCTIONS, readJudgeMessage, readQuestionsMessage } from "@stoa/evaluation/judge-prompt";
import {
  type AiProviders,
  type EmbeddingAnswer,
  type EmbeddingCall,
  estimateTokens,
  type OnPiece,
  type ProviderAnswer,
  type ProviderCall,
} from "./ai-provider.ts";
import { toFailure } from "./provider-errors.ts";

export interface SandboxOptions {
  sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Marks every answer, so that it is not mistaken for a model's. */
export const SANDBOX_LABEL = "[sandbox] ";

export const withoutSandboxLabel = (text: string): string =>
  text.startsWith(SANDBOX_LABEL) ? text.slice(SANDBOX_LABEL.length) : text;

/** Long enough to press cancel. */
const SLOW_MS = 5_000;

/**
 * The response that each magic model simulates. The same table as for real providers converts it, so that integrations see the same
 * errors.
 */
const magicFaults: ReadonlyMap<string, object> = new Map<string, object>([
  ["sandbox-429", { statusCode: 429, responseHeaders: { "retry-after": "30" } }],
  ["sandbox-500", { statusCode: 500 }],
  ["sandbox-401", { statusCode: 401 }],
  ["sandbox-filter", { statusCode: 400, responseBody: '{"code":"content_filter"}' }],
  ["sandbox-context", { statusCode: 400, responseBody: '{"code":"context_length_exceeded"}' }],
  ["sandbox-cut", { statusCode: 200, code: "UND_ERR_SOCKET" }],
  ["sandbox-badsse", { statusCode: 200 }],
]);

/** Other names are models that the sandbox only names. */
const OWN_MODELS: ReadonlySet<string> = new Set(["sandbox", "sandbox-slow"]);

/** A provider without a model: equal calls get equal answers, and nothing is billed. */
export function createSandbox({
  sleep = (ms, signal) => wait(ms, undefined, { signal }),
}: SandboxOptions = {}): AiProviders {
  const begin = async ({ signal, progress, model }: ProviderCall | EmbeddingCall): Promise<void> => {
    signal.throwIfAborted();
    if (progress) progress.isSent = true;
    if (model === "sandbox-slow") await sleepUnlessAborted(sleep, signal);
  };
  return {
    async run(call) {
      await begin(call);
      return answer(call);
    },
    stream: (call, onPiece) => stream(call, onPiece, sleep),
    async embed(call) {
      await begin(call);
      return embed(call);
    },
    verify: async () => "valid",
  };
}

export function withSandbox(real: AiProviders, sandbox: AiProviders): AiProviders {
  const of = (provider: string) => (provider === "sandbox" ? sandbox : real);
  return {
    run: (call) => of(call.provider).run(call),
    stream: (call, onPiece) => of(call.provider).stream(call, onPiece),
    embed: (call) => of(call.provider).embed(call),
    verify: (key, signal) => of(key.provider).verify(key, signal),
    mustBeAvailable: (key) => of(key.provider).mustBeAvailable?.(key),
    close: async () => real.close?.(),
  };
}

type Sleep = NonNullable<SandboxOptions["sleep"]>;

async function sleepUnlessAborted(sleep: Sleep, signal: AbortSignal, ms = SLOW_MS): Promise<void> {
  try {
    await sleep(ms, signal);
  } finally {
    signal.throwIfAborted();
  }
}

/** These streams fail after half of the answer. */
const brokenStreamModels: ReadonlySet<string> = new Set(["sandbox-cut", "sandbox-badsse"]);
const SLOW_PIECES = 10;

async function stream(call: ProviderCall, onPiece: OnPiece, sleep: Sleep): Promise<ProviderAnswer> {
  call.signal.throwIfAborted();
  const { progress } = call;
  if (progress) progress.isSent = true;
  const isBroken = brokenStreamModels.has(call.model);
  const full = answer(isBroken ? { ...call, model: "sandbox" } : call);
  const pieces = (full.output.match(/\S*\s*/g) ?? []).filter((piece) => piece !== "");
  const sent = isBroken ? pieces.slice(0, pieces.length / 2) : pieces;
  for (const [at, piece] of sent.entries()) {
    if (call.model === "sandbox-slow" && at % Math.ceil(pieces.length / SLOW_PIECES) === 0)
      await sleepUnlessAborted(sleep, call.signal, SLOW_MS / SLOW_PIECES);
    call.signal.throwIfAborted();
    if (progress) progress.outputBytes += Buffer.byteLength(piece);
    await onPiece(piece);
  }
  return isBroken ? answer(call) : full;
}

function answer(call: ProviderCall): ProviderAnswer {
  const prompt = call.messages.map(({ content }) => content).join("\n\n");
  if (call.model === "sandbox-echo") return toAnswer(call, prompt, SANDBOX_LABEL + prompt);
  const fault = magicFaults.get(call.model);
  if (fault) throw toFailure(fault, call, 1).error;
  return toAnswer(
    call,
    prompt,
    SANDBOX_LABEL + (practiceQuestions(call) ?? call.sample ?? practiceJudgment(call) ?? inventedText(call)),
  );
}

function embed(call: EmbeddingCall): EmbeddingAnswer {
  const fault = magicFaults.get(call.model);
  if (fault) throw toFailure(fault, call, 1).error;
  const promptTokens = call.texts.reduce((sum, text) => sum + estimateTokens(text), 0);
  return {
    vectors: call.texts.map(countWords),
    model: call.model,
    usage: { promptTokens, completionTokens: 0, totalTokens: promptTokens },
    attempts: 1,
  };
}

const DIMENSIONS = 1_024;

/**
 * A vector without a model: how often each word occurs, by a hash of the word. Texts of the same words have the same direction, and the label
 * of an answer is no word of it. The first dimension is for texts without a word.
 */
function countWords(text: string): number[] {
  const vector = Array<number>(DIMENSIONS).fill(0);
  const words =
    withoutSandboxLabel(text)
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  const dimensions = words.map((word) => 1 + (hashWord(word) % (DIMENSIONS - 1)));
  for (const dimension of dimensions.length > 0 ? dimensions : [0])
    vector[dimension] = (vector[dimension] ?? 0) + 1;
  return vector;
}

/** FNV-1a. A digest of each word of a long text would block the process for a second. */
function hashWord(word: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < word.length; at++) hash = Math.imul(hash ^ word.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

/** A text that the rubric quotes. */
const QUOTED = /"([^"]+)"/g;

/**
 * The answer to the messages of a judge; null: it is another call. The output passes if it contains each text that the rubric has in quotation
 * marks, in any case.
 */
function practiceJudgment({ messages: [system, user, ...others] }: ProviderCall): string | null {
  if (system?.content !== JUDGE_INSTRUCTIONS || !user || others.length > 0) return null;
  const material = readJudgeMessage(user.content);
  if (!material) return null;
  const output = material.output.toLowerCase();
  const quoted = [...material.rubric.matchAll(QUOTED)].map(([, text = ""]) => text.toLowerCase());
  const found = quoted.filter((text) => output.includes(text)).length;
  return JSON.stringify({
    reason: `A practice verdict; no model was asked. The output contains ${found} of ${quoted.length} texts that the rubric quotes.`,
    pass: quoted.length > 0 && found === quoted.length,
    score: quoted.length > 0 ? found / quoted.length : 0,
  });
}

/** Characters of an output that a practice question repeats. */
const MAX_REPEATED = 300;

/** Three questions of the words of the output, which no model wrote; null: it is another call. */
function practiceQuestions({ messages: [system, user, ...others] }: ProviderCall): string | null {
  if (system?.content !== QUESTION_INSTRUCTIONS || !user || others.length > 0) return null;
  const output = readQuestionsMessage(user.content);
  if (output === null) return null;
  const repeated = withoutSandboxLabel(output).slice(0, MAX_REPEATED).toWellFormed();
  return JSON.stringify(Array(QUESTION_COUNT).fill(`${repeated}?`));
}

/** Cuts at `maxTokens`, but not within the label. An echo and a sample are never cut. */
function toAnswer(call: ProviderCall, prompt: string, full: string): ProviderAnswer {
  const isWhole = call.model === "sandbox-echo" || call.sample !== undefined;
  const limit = isWhole ? undefined : call.options.maxTokens;
  const output = full.slice(0, Math.max(SANDBOX_LABEL.length, (limit ?? Number.POSITIVE_INFINITY) * 4));
  const promptTokens = estimateTokens(prompt);
  const completionTokens = estimateTokens(output);
  return {
    output,
    model: call.model,
    finishReason: output === full ? "stop" : "length",
    usage: { promptTokens, completionTokens, totalTokens: promptTokens + completionTokens },
    attempts: 1,
  };
}

const vocabulary =
  "agora amber anchor arch atlas bridge canvas cedar chorus column compass coral delta echo ember fable garden harbor horizon island lantern marble meadow mosaic olive orchard pebble plaza portico prism quill river signal stoa thread vessel".split(
    " ",
  );

/**
 * Words chosen by a hash of everything that the answer may depend on. They contain nothing of the prompt, which belongs to the
 * author; `sandbox-echo` returns the rendered prompt.
 */
function inventedText({ versionId = "", model, messages, options }: ProviderCall): string {
  const seed = JSON.stringify([
    versionId,
    model,
    messages.map(({ role, content }) => [role, content]),
    options.temperature ?? null,
    options.maxTokens ?? null,
  ]);
  const fingerprint = createHash("sha256").update(seed).digest();
  const words = Array.from(fingerprint, (byte) => vocabulary[byte % vocabulary.length]).join(" ");
  const suffix = OWN_MODELS.has(model) ? "" : ` that pretends to be ${model}`;
  return `A practice answer${suffix}; no model was asked. ${words}.`;
}
