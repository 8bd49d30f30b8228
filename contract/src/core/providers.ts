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
