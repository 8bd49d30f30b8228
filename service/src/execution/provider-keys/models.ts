import { type AiModel, type ModelMode, type Provider, providers } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import {
  defaultEmbeddingModels,
  defaultModels,
  hasEmbeddings,
} from "../../integrations/ai-providers/ai-provider.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import { listPricedModels } from "./cost.ts";
import { listUsableProviders } from "./queries.ts";

interface ModelQuery extends Paging {
  provider?: Provider | undefined;
  mode: ModelMode;
  usable: boolean;
  search?: string | undefined;
}

type ModelFields = Omit<AiModel, "isUsable">;

export async function listModels(
  ctx: Context,
  { userId }: Member,
  query: ModelQuery,
): Promise<Page<AiModel>> {
  const usable = new Set<Provider>(await listUsableProviders(ctx.db, userId));
  if (ctx.config.sandbox) usable.add("sandbox");
  const words = query.search?.toLowerCase() ?? "";
  const found = providers
    .filter((provider) => provider !== "sandbox" || ctx.config.sandbox)
    .filter((provider) => query.provider === undefined || provider === query.provider)
    .filter((provider) => !query.usable || usable.has(provider))
    .flatMap((provider) => modelsOf(provider, query.mode, ctx.now()))
    .filter(({ id, name }) => `${id} ${name ?? ""}`.toLowerCase().includes(words));
  const start = offsetOf(query);
  return {
    items: found
      .slice(start, start + query.limit)
      .map((model) => ({ ...model, isUsable: usable.has(model.provider) })),
    total: found.length,
  };
}

/** With the default model first, also where no price is known. */
function modelsOf(provider: Provider, mode: ModelMode, at: Date): ModelFields[] {
  const defaultId = findDefaultModel(provider, mode);
  if (defaultId === undefined) return [];
  const listed = listPricedModels(provider, at)
    .filter((model) => model.mode === mode)
    .toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const toModel = (model: Omit<ModelFields, "provider" | "isDefault">): ModelFields => ({
    ...model,
    provider,
    isDefault: model.id === defaultId,
  });
  const others = listed.filter(({ id }) => id !== defaultId).map(toModel);
  if (defaultId === null) return others;
  const price = provider === "sandbox" ? 0 : null;
  const unlisted = {
    id: defaultId,
    mode,
    name: null,
    contextWindow: null,
    promptPrice: price,
    completionPrice: price,
  };
  return [toModel(listed.find(({ id }) => id === defaultId) ?? unlisted), ...others];
}

/** undefined: the provider has no models of this mode; null: only the owner of the server knows them. */
function findDefaultModel(provider: Provider, mode: ModelMode): string | null | undefined {
  if (mode === "chat") return defaultModels[provider];
  return hasEmbeddings(provider) ? defaultEmbeddingModels[provider] : undefined;
}
