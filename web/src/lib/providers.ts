/** The names of AI providers as they write them. */
const NAMES: Record<string, string> = {
  openai: "OpenAI",
  anthropic: "Anthropic",
  google: "Google",
  mistral: "Mistral",
  groq: "Groq",
  deepseek: "DeepSeek",
  xai: "xAI",
  openrouter: "OpenRouter",
  ollama: "Ollama",
  "openai-compatible": "Compatible with OpenAI",
};

/** Those that people can add a key for. */
export const PROVIDERS = Object.keys(NAMES);

/** A provider that is newer than this client keeps its id. */
export const providerName = (id: string): string => (id === "sandbox" ? "Sandbox" : (NAMES[id] ?? id));

/** Whose address the person knows, not the service. */
export const hasOwnAddress = (id: string): boolean => id === "ollama" || id === "openai-compatible";

const WITH_EMBEDDINGS = new Set([
  "openai",
  "mistral",
  "openrouter",
  "ollama",
  "openai-compatible",
  "sandbox",
]);

export const hasEmbeddings = (id: string): boolean => WITH_EMBEDDINGS.has(id);

/** Those of `PROVIDERS` that have them. */
export const EMBEDDING_PROVIDERS = PROVIDERS.filter(hasEmbeddings);

const ANY_MODEL = new Set(["openrouter", "ollama", "openai-compatible", "sandbox"]);

/** Whether its keys run every product, because it serves models of all makers. */
export const runsEveryProduct = (id: string): boolean => ANY_MODEL.has(id);
