import { z } from "zod";

export const providers = [
  "openai",
  "anthropic",
  "google",
  "mistral",
  "groq",
  "deepseek",
  "xai",
  "openrouter",
  "ollama",
  "openai-compatible",
  "sandbox",
] as const;
export const Provider = z.enum(providers).meta({ id: "Provider" });
export type Provider = z.infer<typeof Provider>;

/** Those with `POST /embeddings` of OpenAI's API. */
export const embeddingProviders = [
  "openai",
  "mistral",
  "openrouter",
  "ollama",
  "openai-compatible",
  "sandbox",
] as const satisfies readonly Provider[];
export type EmbeddingProvider = (typeof embeddingProviders)[number];
