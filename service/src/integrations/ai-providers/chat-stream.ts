import { createParser } from "eventsource-parser";
import { z } from "zod";
import type { Model } from "./answer.ts";

/** As the SDK's packages tell a stream. */
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
/** Text, or a list in which there may be reasoning, too. */
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
/** Characters of one event: even a server that sends a whole answer as one needs less. Without a bound a line without end fills the memory. */
const MAX_EVENT_CHARACTERS = 2 * 1024 * 1024;

/**
 * What a server says that speaks OpenAI's chat completions, as the SDK's packages would tell it. They lead each stream
 * through six or more of the web's, which hold more than half of what a run holds while its stream is open.
 */
export async function* readChatStream(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<Part, void, undefined> {
  const frames: string[] = [];
  const parser = createParser({
    onEvent: ({ data }) => void frames.push(data),
    onError: (error) => {
      if (error.type === "max-buffer-size-exceeded") throw error;
    },
    maxBufferSize: MAX_EVENT_CHARACTERS,
  });
  const letters = new TextDecoder();
  const end = new StreamEnd();
  for await (const bytes of body) {
    parser.feed(letters.decode(bytes, { stream: true }));
    for (const frame of frames.splice(0)) {
      if (frame === DONE) continue;
      const rawValue: unknown = JSON.parse(frame);
      // First of all, because an error has another shape.
      yield { type: "raw", rawValue };
      const chunk = Chunk.parse(rawValue);
      end.add(chunk);
      const delta = chunk.choices[0]?.delta;
      if (delta) yield* partsOf(delta);
    }
  }
  yield* end.parts();
}

/** The same of an answer that came whole, because the server does not stream. */
export async function* readChatCompletion(completion: unknown): AsyncGenerator<Part, void, undefined> {
  const { choices, ...told } = Completion.parse(completion);
  const [choice] = choices.map(({ message, finish_reason }) => ({ delta: message, finish_reason }));
  const end = new StreamEnd();
  end.add({ ...told, choices: [choice!] });
  if (choice!.delta) yield* partsOf(choice!.delta);
  yield* end.parts();
}

/** What a model reasons is no text, but somebody is billed for it. */
function* partsOf(delta: Delta): Generator<Part, void, undefined> {
  const reasoning = delta["reasoning_content"] ?? delta["reasoning"];
  if (isText(reasoning)) yield { type: "reasoning-delta", id: "", delta: reasoning };
  if (hasOutput(delta)) yield { type: "text-delta", id: "", delta: textOf(delta) };
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";

/** Reasoning and calls of tools, too: they are no text, but somebody may be billed for them. */
const hasOutput = ({ role: _, ...said }: Delta): boolean =>
  Object.values(said).some(
    (value) => isText(value) || (typeof value === "object" && Object.keys(value ?? {}).length > 0),
  );

/** A refusal is said beside the content. */
function textOf({ content, refusal }: Delta): string {
  const told = Array.isArray(content)
    ? content.flatMap(({ type, text }) => (type === "text" && isText(text) ? text : []))
    : [content ?? ""];
  return [...told, ...(isText(refusal) ? [refusal] : [])].join("");
}

/** How a stream ends, of which any chunk may tell a part. */
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

  *parts(): Generator<Part, void, undefined> {
    if (this.#reason === undefined) throw new Error("the stream has no end event");
    if (this.#modelId) yield { type: "response-metadata", modelId: this.#modelId };
    yield {
      type: "finish",
      finishReason: { unified: this.#unified(), raw: this.#reason },
      usage: toSdkUsage(this.#usage),
    };
  }

  #unified(): Finish["finishReason"]["unified"] {
    if (this.#reason === "stop") return this.#isRefused ? "content-filter" : "stop";
    if (this.#reason === "content_filter") return "content-filter";
    return this.#reason === "length" ? "length" : "other";
  }
}

/** What is not told stays unknown, and is estimated. */
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
