import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Break, type Streamed, sendStream } from "./provider-stream.ts";

/** The three wire formats; Mistral, Groq, Ollama and most others use OpenAI's. */
export type WireFormat = "openai" | "anthropic" | "google";

export type Stop = "stop" | "length" | "filter";

/** An answer in common terms, converted to each format. */
export interface Answer {
  text?: string;
  /** null: no stop reason. */
  stop?: Stop | null;
  /** null: no usage. */
  usage?: { input: number; output: number; cached?: number; reasoning?: number } | null;
  model?: string;
}

export interface Raw {
  status: number;
  headers?: Record<string, string>;
  /** A string is sent unchanged, anything else as JSON. */
  body?: unknown;
  /** Sends chunks of this many bytes, also within a character. */
  chunk?: number;
}

/**
 * - `cut`: promises more bytes than it sends, then closes · `reset`: closes without a byte
 * - `hang`: never answers · `stall`: answers half and falls silent · `trickle`: sends spaces and never the answer · `bad-json`: half a JSON text as if it were whole
 * - `filter`: nothing but "filtered" · `context`, `quota`, `no-model`, `bad-key`: the format's refusals, which quote
 *   the prompt as real ones do
 */
export type Misbehaviour =
  | "cut"
  | "reset"
  | "hang"
  | "stall"
  | "trickle"
  | "bad-json"
  | "filter"
  | "context"
  | "quota"
  | "no-model"
  | "bad-key";

/** `stream` is the answer to a streaming request. */
export type Next = Misbehaviour | Raw | { answer: Answer; chunk?: number } | { stream: Streamed };

/** A reply that depends on the request. */
export type Respond = (request: RecordedRequest) => Next;

export interface RecordedRequest {
  method: string;
  /** With path and query. */
  url: string;
  headers: IncomingHttpHeaders;
  body: unknown;
}

export interface ProviderServer {
  /** The base URL of every format, such as `http://127.0.0.1:4711/v1`. */
  url: string;
  requests: RecordedRequest[];
  /** The reply to the next request; calls queue up. Default: a plain answer. */
  next(reply: Next): void;
  /** The reply when the queue is empty; null: a plain answer again. */
  always(reply: Next | Respond | null): void;
  /** The next list of models, which verifies a key. Default: an empty list. */
  nextListing(reply: Raw): void;
  /** Resolves with the next request, answered or not. */
  nextRequest(): Promise<RecordedRequest>;
  /** Resolves when a client disconnects before its answer. */
  clientGone: Promise<void>;
  close(): Promise<void>;
}

export interface ProviderServerOptions {
  /** Other keys get 401. */
  key?: string;
}

export const GOOD_KEY = "good-provider-key";

/** A provider on a loopback port with all three formats, which records requests and fails on demand. */
export async function startProviderServer({
  key = GOOD_KEY,
}: ProviderServerOptions = {}): Promise<ProviderServer> {
  const requests: RecordedRequest[] = [];
  const replies: Next[] = [];
  let usual: Next | Respond | null = null;
  const listings: Raw[] = [];
  const sockets = new Set<Socket>();
  let arrival = Promise.withResolvers<RecordedRequest>();
  const gone = Promise.withResolvers<void>();

  const server = createServer(async (incoming, response) => {
    response.on("close", () => {
      if (!response.writableFinished) gone.resolve();
    });
    const request = await record(incoming);
    requests.push(request);
    arrival.resolve(request);
    arrival = Promise.withResolvers();
    if (keyOf(request.headers) !== key) send(response, refusal(request, "bad-key"));
    else if (request.method === "GET") send(response, listings.shift() ?? NO_MODELS);
    else {
      const next = replies.shift() ?? usual ?? { answer: {} };
      reply(request, response, typeof next === "function" ? next(request) : next);
    }
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    next: (next) => void replies.push(next),
    always: (reply) => {
      usual = reply;
    },
    nextListing: (listing) => void listings.push(listing),
    nextRequest: () => arrival.promise,
    clientGone: gone.promise,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A base URL without a server. */
export async function refusedUrl(): Promise<string> {
  const server = await startProviderServer();
  await server.close();
  return server.url;
}

async function record(incoming: IncomingMessage): Promise<RecordedRequest> {
  let text = "";
  for await (const chunk of incoming.setEncoding("utf8")) text += chunk;
  const { method = "", url = "", headers } = incoming;
  return { method, url, headers, body: text === "" ? undefined : JSON.parse(text) };
}

function keyOf(headers: IncomingHttpHeaders): unknown {
  return headers["x-api-key"] ?? headers["x-goog-api-key"] ?? headers.authorization?.replace(/^Bearer /, "");
}

function formatOf({ url }: RecordedRequest): WireFormat {
  if (/:(g|streamG)enerateContent/.test(url) || url.includes("pageSize=")) return "google";
  return url.endsWith("/messages") ? "anthropic" : "openai";
}

const NO_MODELS: Raw = { status: 200, body: { object: "list", data: [], models: [] } };

function reply(request: RecordedRequest, response: ServerResponse, next: Next): void {
  const whole = JSON.stringify(inWords(request, {}));
  const half = whole.slice(0, whole.length / 2);
  if (next === "hang") return;
  if (next === "reset") response.socket?.destroy();
  else if (isForStream(request) && toStream(next)) void replyInPieces(request, response, toStream(next)!);
  else if (next === "stall") startAnswer(response, whole.length, half);
  else if (next === "trickle") trickle(response);
  // Closed only after half of the answer was sent; otherwise the client would receive nothing.
  else if (next === "cut") startAnswer(response, whole.length, half, () => response.socket?.destroySoon());
  else if (next === "bad-json") send(response, { status: 200, body: half });
  else send(response, toRaw(request, next));
}

const isForStream = ({ url, body }: RecordedRequest) =>
  url.includes(":streamGenerateContent") || (body as { stream?: boolean } | undefined)?.stream === true;

const breaksOf: Partial<Record<Misbehaviour, Break>> = {
  cut: "cut",
  stall: "stall",
  trickle: "trickle",
  "bad-json": "bad-json",
};

/** The same reply as a stream; undefined: refusals have none. */
function toStream(next: Next): Streamed | undefined {
  if (next === "filter") return { pieces: [], stop: "filter" };
  if (typeof next === "string") return breaksOf[next] && { breaks: breaksOf[next], after: 1 };
  if ("stream" in next) return next.stream;
  if (!("answer" in next)) return undefined;
  const { text = ANSWER_TEXT, ...ending } = next.answer;
  return { pieces: text.match(/\S+\s*/g) ?? [], ...ending };
}

function replyInPieces(
  request: RecordedRequest,
  response: ServerResponse,
  streamed: Streamed,
): Promise<void> {
  const { stop = "stop", model = modelOf(request) } = streamed;
  const { usage = USAGE } = streamed.endless
    ? { usage: { input: 12, output: allowedBy(request) } }
    : streamed;
  return sendStream(response, formatOf(request), { stop, usage, model }, streamed);
}

/** Used when the request has no limit; more than most models write. */
const ENDLESS_TOKENS = 100_000;

export function allowedBy({ body }: RecordedRequest): number {
  const { max_tokens, max_completion_tokens } = body as Record<string, number | undefined>;
  return max_tokens ?? max_completion_tokens ?? ENDLESS_TOKENS;
}

function toRaw(
  request: RecordedRequest,
  next: Refusal | "filter" | Raw | { answer: Answer; chunk?: number } | { stream: Streamed },
): Raw {
  if (typeof next === "object" && "stream" in next) return { status: 200, body: inWords(request, {}) };
  if (next === "filter") return { status: 200, body: inWords(request, { text: "", stop: "filter" }) };
  if (typeof next === "string") return refusal(request, next);
  if (!("answer" in next)) return next;
  const { answer, ...how } = next;
  return { status: 200, body: inWords(request, answer), ...how };
}

const TRICKLE_MS = 10;

function trickle(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json" });
  const timer = setInterval(() => response.write(" "), TRICKLE_MS);
  response.on("close", () => clearInterval(timer));
}

function startAnswer(response: ServerResponse, length: number, half: string, then?: () => void): void {
  response.writeHead(200, { "content-type": "application/json", "content-length": length });
  response.write(half, then);
}

function send(response: ServerResponse, { status, headers, body, chunk }: Raw): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  const bytes = Buffer.from(typeof body === "string" ? body : JSON.stringify(body ?? {}));
  if (chunk) void sendChunks(response, bytes, chunk);
  else response.end(bytes);
}

async function sendChunks(response: ServerResponse, bytes: Buffer, size: number): Promise<void> {
  for (let at = 0; at < bytes.length; at += size) {
    response.write(bytes.subarray(at, at + size));
    await nextTurn();
  }
  response.end();
}

const ANSWER_TEXT = "An answer.";
export const USAGE = { input: 12, output: 5 };

function inWords(request: RecordedRequest, answer: Answer): object {
  if (request.url.endsWith("/embeddings")) return toEmbeddings(request);
  const { text = ANSWER_TEXT, stop = "stop", usage = USAGE } = answer;
  const model = answer.model ?? modelOf(request);
  return answerIn[formatOf(request)]({ text, stop, usage, model });
}

/** One vector for each text, in the reverse order, which OpenAI's format allows. */
function toEmbeddings(request: RecordedRequest): object {
  const { input } = request.body as { input: string[] };
  const data = input.map((text, index) => ({ object: "embedding", index, embedding: [text.length, 1] }));
  return {
    object: "list",
    data: data.reverse(),
    model: modelOf(request),
    usage: { prompt_tokens: USAGE.input, total_tokens: USAGE.input },
  };
}

/** Google has the model in the path. */
function modelOf({ url, body }: RecordedRequest): string {
  return (body as { model?: string }).model ?? /models\/([^:]+):/.exec(url)?.[1] ?? "";
}

const answerIn: Record<WireFormat, (answer: Required<Answer>) => object> = {
  openai: ({ text, stop, usage, model }) => ({
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1_700_000_000,
    model,
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: text },
        finish_reason: stop === "filter" ? "content_filter" : stop,
      },
    ],
    usage: usage && {
      prompt_tokens: usage.input,
      completion_tokens: usage.output,
      total_tokens: usage.input + usage.output,
      prompt_tokens_details: { cached_tokens: usage.cached ?? 0 },
      completion_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    },
  }),
  anthropic: ({ text, stop, usage, model }) => ({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model,
    content: text === "" ? [] : [{ type: "text", text }],
    stop_reason: stop && { stop: "end_turn", length: "max_tokens", filter: "refusal" }[stop],
    stop_sequence: null,
    usage: {
      input_tokens: (usage?.input ?? 0) - (usage?.cached ?? 0),
      cache_read_input_tokens: usage?.cached ?? 0,
      output_tokens: usage?.output ?? 0,
    },
  }),
  google: ({ text, stop, usage, model }) => ({
    candidates: [
      {
        content: { role: "model", parts: text === "" ? [] : [{ text }] },
        ...(stop && { finishReason: { stop: "STOP", length: "MAX_TOKENS", filter: "SAFETY" }[stop] }),
      },
    ],
    usageMetadata: usage && {
      promptTokenCount: usage.input,
      candidatesTokenCount: usage.output - (usage.reasoning ?? 0),
      totalTokenCount: usage.input + usage.output,
      cachedContentTokenCount: usage.cached ?? 0,
      thoughtsTokenCount: usage.reasoning ?? 0,
    },
    modelVersion: model,
  }),
};

type Refusal = "context" | "quota" | "no-model" | "bad-key";

/** Quotes the request with its key, so that tests detect leaks. */
function refusal(request: RecordedRequest, kind: Refusal): Raw {
  const { status, message, ...codes } = refusals[kind][formatOf(request)];
  const quoted = `${message} ${JSON.stringify(request.body)} ${keyOf(request.headers)}`;
  return { status, body: wrapIn[formatOf(request)](status, quoted, codes) };
}

interface Codes {
  code?: string;
  type?: string;
  reason?: string;
}

const wrapIn: Record<WireFormat, (status: number, message: string, codes: Codes) => object> = {
  openai: (_, message, { code, type = "invalid_request_error" }) => ({
    error: { message, type, param: null, code: code ?? null },
  }),
  anthropic: (_, message, { type = "invalid_request_error" }) => ({
    type: "error",
    error: { type, message },
  }),
  google: (status, message, { type = "INVALID_ARGUMENT", reason }) => ({
    error: { code: status, message, status: type, ...(reason && { details: [{ reason }] }) },
  }),
};

const refusals: Record<Refusal, Record<WireFormat, Codes & { status: number; message: string }>> = {
  context: {
    openai: {
      status: 400,
      message: "This model's maximum context length is 128000 tokens.",
      code: "context_length_exceeded",
    },
    anthropic: { status: 400, message: "prompt is too long: 210000 tokens > 200000 maximum" },
    google: {
      status: 400,
      message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    },
  },
  quota: {
    openai: {
      status: 429,
      message: "You exceeded your current quota, please check your plan and billing details.",
      code: "insufficient_quota",
      type: "insufficient_quota",
    },
    anthropic: { status: 400, message: "Your credit balance is too low to access the Anthropic API." },
    google: {
      status: 429,
      message: "Your prepayment credits are depleted.",
      type: "RESOURCE_EXHAUSTED",
    },
  },
  "no-model": {
    openai: { status: 404, message: "The model does not exist.", code: "model_not_found" },
    anthropic: { status: 404, message: "model: no-such-model", type: "not_found_error" },
    google: {
      status: 404,
      message: "models/no-such-model is not found for API version v1beta",
      type: "NOT_FOUND",
    },
  },
  "bad-key": {
    openai: { status: 401, message: "Incorrect API key provided.", code: "invalid_api_key" },
    anthropic: { status: 401, message: "invalid x-api-key", type: "authentication_error" },
    google: { status: 400, message: "API key not valid.", reason: "API_KEY_INVALID" },
  },
};
