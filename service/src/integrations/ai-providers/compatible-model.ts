import { OpenAICompatibleChatLanguageModel } from "@ai-sdk/openai-compatible";
import type { Model } from "./answer.ts";

type Config = ConstructorParameters<typeof OpenAICompatibleChatLanguageModel>[1];

/** Knows of no call. A model that is made anew makes its schemas anew: 0.2 ms, a tenth of a run. */
const shared = new OpenAICompatibleChatLanguageModel("", { provider: "", url: ({ path }) => path });

/** A model of a server that speaks OpenAI's words, for one call: nothing of that outlives it. */
export const compatibleModel = (modelId: string, config: Config): Model =>
  Object.create(shared, { modelId: { value: modelId }, config: { value: config } });
