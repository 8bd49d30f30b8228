import { z } from "zod";
import { endpoint, listOf } from "../core/endpoint.ts";
import { filter, paging, queryFlag } from "../core/envelope.ts";
import { Provider } from "../core/providers.ts";

const price = z.number().nullable().describe("USD for a million tokens of a short prompt; null: unknown");

const modes = ["chat", "embedding"] as const;

export const AiModel = z
  .object({
    id: z
      .string()
      .describe(
        "For options.model of a run; an embedding model is for the step embedding and for judge.embedding",
      ),
    mode: z.enum(modes).describe("What it answers with: text, or the embeddings of texts"),
    provider: Provider,
    name: z.string().nullable(),
    contextWindow: z.int().nullable().describe("Tokens of prompt and output together"),
    promptPrice: price,
    completionPrice: price,
    isDefault: z
      .boolean()
      .describe(
        "Whether a run uses it when neither the caller nor the product names a model. Of embedding models: when the step or judge.embedding names none",
      ),
    isUsable: z.boolean().describe("Whether you have a key of the provider, or the sandbox needs none"),
  })
  .meta({ id: "AiModel" });

export type AiModel = z.input<typeof AiModel>;
export type ModelMode = (typeof modes)[number];

export const list = endpoint({
  name: "ai.models.list",
  tag: "ai",
  method: "GET",
  path: "/ai/models",
  summary: "List models with their prices",
  description:
    "By provider; a provider's default model first, then by id. Other models of a provider run too: their price is unknown here. POST /ai/estimate has the price of a run.",
  access: { who: "member", permission: "ai:execute" },
  query: z.strictObject({
    ...paging,
    provider: filter(Provider),
    mode: z
      .enum(modes)
      .default("chat")
      .describe("chat: models that answer with text; embedding: models that answer with embeddings"),
    usable: queryFlag.describe("Only models that you have a key for, and the sandbox"),
    search: z.string().trim().max(100).optional().describe("A part of the id or the name"),
  }),
  response: listOf(AiModel),
});
