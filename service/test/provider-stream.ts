import type { ServerResponse } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import type { Answer, WireFormat } from "./provider-server.ts";

/**
 * - `cut`: the connection is lost between two frames · `cut-in-frame`: in the middle of one
 * - `close`: ends cleanly in the middle of a frame · `no-finish`: ends cleanly without saying why the model stopped
 * - `bad-json`: half a JSON text as if it were a frame · `error`: a frame that tells an error, and then a clean end
 * - `stall`: falls silent · `trickle`: goes on with comments, and never with a word
 */
export type Break =
  | "cut"
  | "cut-in-frame"
  | "close"
  | "no-finish"
  | "bad-json"
  | "error"
  | "stall"
  | "trickle";

/** An answer as it comes. */
export interface Streamed extends Omit<Answer, "text"> {
  pieces?: string[];
  /** How it goes wrong, once `after` pieces are sent (all of them, unless told). */
  breaks?: Break;
  after?: number;
  /** A model that never stops by itself: it counts as many tokens as the request allows. */
  endless?: boolean;
  /** Sends it in chunks of so many bytes, wherever letters end. */
  chunk?: number;
  /** Awaited before each piece, and before the end. */
  gate?: (piece: number) => Promise<unknown>;
}

export type ToldStream = Required<Pick<Answer, "stop" | "usage" | "model">>;

interface Frames {
  begin: string[];
  piece(text: string): string;
  end: string[];
  error: string;
}

const TRICKLE_MS = 10;

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const named = (value: { type: string }) => `event: ${value.type}\n${data(value)}`;

const framesIn: Record<WireFormat, (answer: ToldStream) => Frames> = {
  openai: ({ stop, usage, model }) => {
    const chunk = (choices: object[], more = {}) =>
      data({
        id: "chatcmpl-1",
        object: "chat.completion.chunk",
        created: 1_700_000_000,
        model,
        choices,
        ...more,
      });
    const choice = (delta: object, finish_reason: string | null = null) => ({
      index: 0,
      delta,
      finish_reason,
    });
    const counted = usage && {
      prompt_tokens: usage.input,
      completion_tokens: usage.output,
      total_tokens: usage.input + usage.output,
      prompt_tokens_details: { cached_tokens: usage.cached ?? 0 },
      completion_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    };
    return {
      begin: [chunk([choice({ role: "assistant", content: "" })])],
      piece: (content) => chunk([choice({ content })]),
      // With the last choice rather than behind it: Mistral's client takes no frame without one.
      end: [
        chunk([choice({}, stop === "filter" ? "content_filter" : stop)], { usage: counted }),
        "data: [DONE]\n\n",
      ],
      error: data({ error: { message: "The server had an error", type: "server_error", code: null } }),
    };
  },
  anthropic: ({ stop, usage, model }) => {
    const message = {
      ...{ id: "msg_1", type: "message", role: "assistant", model, content: [] },
      ...{ stop_reason: null, stop_sequence: null },
      usage: {
        input_tokens: (usage?.input ?? 0) - (usage?.cached ?? 0),
        cache_read_input_tokens: usage?.cached ?? 0,
        output_tokens: 1,
      },
    };
    const stop_reason = stop && { stop: "end_turn", length: "max_tokens", filter: "refusal" }[stop];
    return {
      begin: [
        named({ type: "message_start", ...{ message } }),
        named({ type: "content_block_start", ...{ index: 0, content_block: { type: "text", text: "" } } }),
        named({ type: "ping" }),
      ],
      piece: (text) =>
        named({ type: "content_block_delta", ...{ index: 0, delta: { type: "text_delta", text } } }),
      end: [
        named({ type: "content_block_stop", ...{ index: 0 } }),
        named({
          type: "message_delta",
          ...{ delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: usage?.output ?? 0 } },
        }),
        named({ type: "message_stop" }),
      ],
      error: named({ type: "error", ...{ error: { type: "overloaded_error", message: "Overloaded" } } }),
    };
  },
  google: ({ stop, usage, model }) => {
    const chunk = (parts: object[], candidate = {}, more = {}) =>
      data({
        candidates: [{ content: { role: "model", parts }, ...candidate }],
        modelVersion: model,
        ...more,
      });
    const finishReason = stop && { stop: "STOP", length: "MAX_TOKENS", filter: "SAFETY" }[stop];
    const usageMetadata = usage && {
      promptTokenCount: usage.input,
      candidatesTokenCount: usage.output,
      totalTokenCount: usage.input + usage.output,
      cachedContentTokenCount: usage.cached ?? 0,
    };
    return {
      begin: [],
      piece: (text) => chunk([{ text }]),
      end: [chunk([], finishReason ? { finishReason } : {}, { usageMetadata })],
      error: data({ error: { code: 503, message: "The model is overloaded.", status: "UNAVAILABLE" } }),
    };
  },
};

/** Sends an answer frame by frame, up to where it breaks. */
export async function sendStream(
  response: ServerResponse,
  format: WireFormat,
  told: ToldStream,
  { pieces = ["An ", "answer."], breaks, after = pieces.length, chunk, gate }: Streamed,
): Promise<void> {
  const frames = framesIn[format](told);
  const say = (text: string) => write(response, text, chunk);
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  response.flushHeaders();
  // An error told first is the first frame of all.
  if (breaks !== "error" || after > 0) for (const frame of frames.begin) await say(frame);
  for (const [at, text] of pieces.slice(0, breaks ? after : pieces.length).entries()) {
    await gate?.(at);
    await say(frames.piece(text));
  }
  await gate?.(pieces.length);
  if (breaks) return breakOff(response, frames, breaks);
  for (const frame of frames.end) await say(frame);
  response.end();
}

async function breakOff(response: ServerResponse, frames: Frames, how: Break): Promise<void> {
  const whole = frames.piece("never told");
  const half = whole.slice(0, whole.length / 2);
  // Closed only once all before is on its way.
  const lose = () => void response.socket?.destroySoon();
  if (how === "cut") response.write(": \n\n", lose);
  else if (how === "cut-in-frame") response.write(half, lose);
  else if (how === "close") response.end(half);
  else if (how === "no-finish") response.end();
  else if (how === "bad-json") response.end(`${half}\n\n${frames.end.join("")}`);
  else if (how === "error") response.end(frames.error);
  else if (how === "trickle") await trickle(response);
}

async function trickle(response: ServerResponse): Promise<void> {
  while (!response.destroyed) {
    response.write(": still here\n\n");
    await wait(TRICKLE_MS);
  }
}

async function write(response: ServerResponse, text: string, chunk?: number): Promise<void> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += chunk ?? bytes.length) {
    const part = bytes.subarray(at, at + (chunk ?? bytes.length));
    await new Promise<void>((resolve) => response.write(part, () => resolve()));
  }
}
