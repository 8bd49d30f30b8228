import { OpenAICompatibleChatLanguageModel } from "@ai-sdk/openai-compatible";
import type { Model } from "./answer.ts";

type Config = ConstructorParameters<typeof OpenAICompatibleChatLanguageModel>[1];

/** Has no state of a call. A new model builds its schemas again: 0.2 ms, a tenth of a run. */
const shared = new OpenAICompatibleChatLanguageModel("", { provider: "", url: ({ path }) => path });

/** A model of an OpenAI-compatible server for one call, based on the shared one. */
export const compatibleModel = (modelId: string, config: Config): Model =>
  Object.create(shared, { modelId: { value: modelId }, config: { value: config } });
