import { type AiModel, type Provider, providers } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { defaultModels } from "../../integrations/ai-providers/ai-provider.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import { listPricedModels } from "./cost.ts";
import { listUsableProviders } from "./queries.ts";

interface ModelQuery extends Paging {
  provider?: Provider | undefined;
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
    .flatMap((provider) => modelsOf(provider, ctx.now()))
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
function modelsOf(provider: Provider, at: Date): ModelFields[] {
  const defaultId = defaultModels[provider];
  const listed = listPricedModels(provider, at).toSorted((a, b) => (a.id < b.id ? -1 : 1));
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
    name: null,
    contextWindow: null,
    promptPrice: price,
    completionPrice: price,
  };
  return [toModel(listed.find(({ id }) => id === defaultId) ?? unlisted), ...others];
}
