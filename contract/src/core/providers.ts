import { z } from "zod";

/** The AI providers that a product can be compatible with and a stored key can be of. */
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
