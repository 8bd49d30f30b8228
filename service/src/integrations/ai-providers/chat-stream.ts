import { createParser } from "eventsource-parser";
import { z } from "zod";
import { type OnItem, readEach } from "../../core/read-each.ts";
import type { Model } from "./answer.ts";
import { hasManyParts } from "./many-parts.ts";

export type Part =
  Awaited<ReturnType<Model["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;
type Finish = Extract<Part, { type: "finish" }>;

const OptionalText = z.string().nullish();
const OptionalCount = z.number().nullish();
const Usage = z.object({
  prompt_tokens: OptionalCount,
  completion_tokens: OptionalCount,
  prompt_tokens_details: z
    .object({ cached_tokens: OptionalCount, cache_write_tokens: OptionalCount })
    .nullish(),
  completion_tokens_details: z.object({ reasoning_tokens: OptionalCount }).nullish(),
});
/** Text, or a list that may also contain reasoning. */
const Content = z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]).nullish();
const Delta = z.looseObject({ role: OptionalText, content: Content, refusal: z.unknown().optional() });
const Chunk = z.object({
  model: OptionalText,
  choices: z.array(z.object({ delta: Delta.nullish(), finish_reason: OptionalText })),
  usage: Usage.nullish(),
});
const Completion = z.object({
  model: OptionalText,
  choices: z.array(z.object({ message: Delta.nullish(), finish_reason: OptionalText })).min(1),
  usage: Usage.nullish(),
});
type Delta = z.infer<typeof Delta>;
type Usage = z.infer<typeof Usage>;

const DONE = "[DONE]";
/**
 * Characters of one event. A server that sends a whole answer as one event needs less; without a limit an endless line fills the
 * memory.
 */
const MAX_EVENT_CHARACTERS = 2 * 1024 * 1024;

/**
 * Reads a stream of OpenAI's chat completions as the SDK's parts. The SDK pipes each stream through six or more web streams, which
 * use more than half of the memory of a run. The parts of one chunk of the body may follow at once; the next chunk is read when the
 * last returned promise has resolved.
 */
export async function readChatStream(body: AsyncIterable<Uint8Array>, onPart: OnItem<Part>): Promise<void> {
  const end = new StreamEnd();
  let busy: Promise<void> | undefined;
  const parser = createParser({
    onEvent: ({ data }) => {
      busy = readFrame(data, end, onPart) ?? busy;
    },
    onError: (error) => {
      if (error.type === "max-buffer-size-exceeded") throw error;
    },
    maxBufferSize: MAX_EVENT_CHARACTERS,
  });
  const decoder = new TextDecoder();
  await readEach(body, (bytes) => {
    busy = undefined;
    parser.feed(decoder.decode(bytes, { stream: true }));
    return busy;
  });
  end.emitEnd(onPart);
}

function readFrame(frame: string, end: StreamEnd, onPart: OnItem<Part>): Promise<void> | undefined {
  if (frame === DONE) return undefined;
  if (hasManyParts(frame)) throw new SyntaxError("an event has too many parts");
  const rawValue: unknown = JSON.parse(frame);
  // Before parsing, because an error has another shape.
  void onPart({ type: "raw", rawValue });
  const chunk = Chunk.parse(rawValue);
  end.add(chunk);
  const delta = chunk.choices[0]?.delta;
  return delta ? emitDelta(delta, onPart) : undefined;
}

export function readChatCompletion(completion: unknown, onPart: OnItem<Part>): void {
  const { choices, ...rest } = Completion.parse(completion);
  const [choice] = choices.map(({ message, finish_reason }) => ({ delta: message, finish_reason }));
  const end = new StreamEnd();
  end.add({ ...rest, choices: [choice!] });
  if (choice!.delta) void emitDelta(choice!.delta, onPart);
  end.emitEnd(onPart);
}

/** Reasoning is not output, but it is billed. */
function emitDelta(delta: Delta, onPart: OnItem<Part>): Promise<void> | undefined {
  const reasoning = delta["reasoning_content"] ?? delta["reasoning"];
  if (isText(reasoning)) void onPart({ type: "reasoning-delta", id: "", delta: reasoning });
  return hasOutput(delta) ? onPart({ type: "text-delta", id: "", delta: textOf(delta) }) : undefined;
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";

/** Reasoning and tool calls are not text, but they may be billed. */
const hasOutput = ({ role: _, ...fields }: Delta): boolean =>
  Object.values(fields).some(
    (value) => isText(value) || (typeof value === "object" && Object.keys(value ?? {}).length > 0),
  );

/** OpenAI sends a refusal beside the content. */
function textOf({ content, refusal }: Delta): string {
  const parts = Array.isArray(content)
    ? content.flatMap(({ type, text }) => (type === "text" && isText(text) ? text : []))
    : [content ?? ""];
  return [...parts, ...(isText(refusal) ? [refusal] : [])].join("");
}

class StreamEnd {
  #modelId: string | undefined;
  #usage: Usage = {};
  #reason: string | undefined;
  #isRefused = false;

  add({ model, usage, choices: [choice] }: z.infer<typeof Chunk>): void {
    this.#modelId ||= model ?? undefined;
    this.#usage = usage ?? this.#usage;
    this.#reason = choice?.finish_reason ?? this.#reason;
    this.#isRefused ||= isText(choice?.delta?.refusal);
  }

  emitEnd(onPart: OnItem<Part>): void {
    if (this.#reason === undefined) throw new Error("the stream has no end event");
    if (this.#modelId) void onPart({ type: "response-metadata", modelId: this.#modelId });
    void onPart({
      type: "finish",
      finishReason: { unified: this.#unified(), raw: this.#reason },
      usage: toSdkUsage(this.#usage),
    });
  }

  #unified(): Finish["finishReason"]["unified"] {
    if (this.#reason === "stop") return this.#isRefused ? "content-filter" : "stop";
    if (this.#reason === "content_filter") return "content-filter";
    return this.#reason === "length" ? "length" : "other";
  }
}

/** Missing counts stay undefined and are estimated later. */
function toSdkUsage(usage: Usage): Finish["usage"] {
  const { prompt_tokens, completion_tokens, prompt_tokens_details, completion_tokens_details } = usage;
  return {
    inputTokens: {
      total: prompt_tokens ?? undefined,
      noCache: undefined,
      cacheRead: prompt_tokens_details?.cached_tokens ?? undefined,
      cacheWrite: prompt_tokens_details?.cache_write_tokens ?? undefined,
    },
    outputTokens: {
      total: completion_tokens ?? undefined,
      text: undefined,
      reasoning: completion_tokens_details?.reasoning_tokens ?? undefined,
    },
  };
}
