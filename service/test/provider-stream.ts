import type { ServerResponse } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import type { Answer, WireFormat } from "./provider-server.ts";

/**
 * `cut`: the connection breaks between two frames. `cut-in-frame`: within a frame. `close`: a clean end within a frame.
 * `no-finish`: a clean end without a stop reason. `bad-json`: half a JSON text as a frame. `error`: a frame with an
 * error, then a clean end. `stall`: no more bytes. `trickle`: comments only.
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

/** A streamed answer. */
export interface Streamed extends Omit<Answer, "text"> {
  pieces?: string[];
  /** The fault after `after` pieces (default: all). */
  breaks?: Break;
  after?: number;
  /** Never stops: generates as many tokens as the request allows. */
  endless?: boolean;
  /** Sends chunks of this many bytes, also within a character. */
  chunk?: number;
  /** Awaited before each piece and before the end. */
  gate?: (piece: number) => Promise<unknown>;
}

export type StreamEnding = Required<Pick<Answer, "stop" | "usage" | "model">>;

interface Frames {
  begin: string[];
  piece(text: string): string;
  end: string[];
  error: string;
}

const TRICKLE_MS = 10;

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const named = (value: { type: string }) => `event: ${value.type}\n${data(value)}`;

const framesIn: Record<WireFormat, (answer: StreamEnding) => Frames> = {
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
      // In the frame of the last choice: Mistral's client accepts no frame without one.
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

/** Sends an answer frame by frame, up to its fault. */
export async function sendStream(
  response: ServerResponse,
  format: WireFormat,
  ending: StreamEnding,
  { pieces = ["An ", "answer."], breaks, after = pieces.length, chunk, gate }: Streamed,
): Promise<void> {
  const frames = framesIn[format](ending);
  const say = (text: string) => write(response, text, chunk);
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  response.flushHeaders();
  // An error at the start is the first frame.
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
  // Closed only after everything before was sent.
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
