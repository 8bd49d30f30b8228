import { type EmbeddingCall, estimateTokens, ProviderError, type TokenUsage } from "./ai-provider.ts";
import { countOf } from "./answer.ts";
import { hasManyParts } from "./many-parts.ts";
import { ErrorResponseFound } from "./upstream-error.ts";

/** Above those of known models, which have at most 4,096. */
const MAX_DIMENSIONS = 8_192;
/** Of the squared length of a vector: within them, a cosine is exact enough. Vectors of models have a length of about 1. */
const SQUARED_LENGTH = { min: 1e-100, max: 1e100 };

interface EmbeddingResponse {
  vectors: number[][];
  /** The model that the provider names; undefined: none. */
  model: string | undefined;
  usage: TokenUsage;
}

/** Reads OpenAI's list of embeddings. Any user may run the server, so nothing of it is taken unchecked. */
export function readEmbeddings(text: string, call: EmbeddingCall, attempts: number): EmbeddingResponse {
  if (hasManyParts(text))
    throw new ProviderError("PROVIDER_BAD_RESPONSE", {
      provider: call.provider,
      attempts,
      reason: "response_too_large",
    });
  const body = parseObject(text);
  // Some providers report an error with status 200.
  if (!body || !Array.isArray(body["data"])) throw new ErrorResponseFound(200, text);
  const usage = toUsage(body["usage"], call.texts);
  const problem = findProblem(body["data"], call.texts.length);
  if (problem)
    throw new ProviderError(
      "PROVIDER_BAD_RESPONSE",
      { provider: call.provider, attempts, reason: "bad_embeddings", usage },
      `The provider's embeddings cannot be used: ${problem}.`,
    );
  const { model } = body;
  return {
    vectors: inOrder(body["data"] as Item[]),
    model: typeof model === "string" && model !== "" ? model : undefined,
    usage,
  };
}

interface Item {
  index?: unknown;
  embedding: number[];
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** In our words: the provider's text may quote the input. */
function findProblem(data: readonly unknown[], texts: number): string | null {
  if (data.length !== texts) return `it sent ${data.length} for ${texts} texts`;
  const vectors = data.map((item) => (isObject(item) ? item["embedding"] : undefined));
  const [first] = vectors;
  for (const vector of vectors) {
    if (!Array.isArray(vector) || vector.length === 0) return "one is no list of numbers, or empty";
    if (vector.length > MAX_DIMENSIONS)
      return `one has ${vector.length} dimensions; at most ${MAX_DIMENSIONS} are accepted`;
    if (vector.length !== (first as unknown[]).length) return "they have different numbers of dimensions";
    if (!vector.every((value) => typeof value === "number")) return "one has a value that is no number";
    const square = (vector as number[]).reduce((sum, value) => sum + value * value, 0);
    if (square > SQUARED_LENGTH.max) return "one has a number that is not finite, or too large";
    if (square < SQUARED_LENGTH.min) return "one is zero in all dimensions or nearly, so it has no direction";
  }
  return hasOrder(data as Item[]) ? null : "their indexes do not name each text once";
}

/** Without any index, the order of the texts is assumed, as OpenAI's clients do. */
const hasOrder = (items: readonly Item[]): boolean =>
  items.every(({ index }) => index === undefined) ||
  new Set(
    items.map(({ index }) => index).filter((index) => Number.isInteger(index) && items[index as number]),
  ).size === items.length;

function inOrder(items: readonly Item[]): number[][] {
  const vectors: number[][] = [];
  for (const [at, { index = at, embedding }] of items.entries()) vectors[index as number] = embedding;
  return vectors;
}

function toUsage(usage: unknown, texts: readonly string[]): TokenUsage {
  const counted = isObject(usage) ? countOf(usage["prompt_tokens"]) : undefined;
  const promptTokens = counted ?? texts.reduce((sum, text) => sum + estimateTokens(text), 0);
  return {
    promptTokens,
    completionTokens: 0,
    totalTokens: promptTokens,
    ...(counted === undefined && { estimated: true as const }),
  };
}
