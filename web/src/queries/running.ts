import type { AiExecutionsListQuery, AiModel, EstimateExecution } from "@stoa/sdk";
import { queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";
import { PROVIDER_KEYS, RUNNABLE, RUNS_PER_PAGE } from "../member-requests.ts";

const MOST_KEYS = 100;
const MOST_MODELS = 400;
/** Of one run: a workflow has at most 500 step runs. */
const MOST_STEPS = 600;
const PER_REQUEST = 100;

export const keysQuery = queryOptions({
  queryKey: ["provider-keys", "for-runs"],
  queryFn: ({ signal }) => stoa.ai.keys.list(PROVIDER_KEYS, { signal }).toArray({ limit: MOST_KEYS }),
});

/** The models with a known price. Others run too. */
export const modelsQuery = (provider: string, mode: AiModel["mode"] = "chat") =>
  queryOptions({
    queryKey: ["models", provider, mode],
    queryFn: ({ signal }) =>
      stoa.ai.models
        .list({ provider, ...(mode !== "chat" && { mode }), limit: PER_REQUEST }, { signal })
        .toArray({ limit: MOST_MODELS }),
    staleTime: 300_000,
  });

export const versionQuery = (productId: string, version: string) =>
  queryOptions({
    queryKey: ["product", productId, "version", version],
    queryFn: async ({ signal }) => await stoa.products.versions.get(productId, version, { signal }),
    staleTime: 300_000,
  });

export const estimateQuery = (body: EstimateExecution) =>
  queryOptions({
    queryKey: ["estimate", body],
    queryFn: async ({ signal }) => await stoa.ai.estimate(body, { signal }),
    staleTime: 300_000,
  });

export const executionQuery = (id: string) =>
  queryOptions({
    queryKey: ["execution", id],
    queryFn: async ({ signal }) => await stoa.ai.executions.get(id, { signal }),
  });

export const stepsQuery = (id: string) =>
  queryOptions({
    queryKey: ["execution", id, "steps"],
    queryFn: ({ signal }) =>
      stoa.ai.executions.steps(id, { limit: PER_REQUEST }, { signal }).toArray({ limit: MOST_STEPS }),
  });

export const executionsQuery = (filters: AiExecutionsListQuery) =>
  queryOptions({
    queryKey: ["executions", filters],
    queryFn: ({ signal }) => stoa.ai.executions.list(filters, { signal }).page(),
  });

/** Titles by product id, of what the account bought or sells. */
export const runnableTitlesQuery = queryOptions({
  queryKey: ["runnable-titles"],
  queryFn: async ({ signal }) => {
    const [purchases, own] = await Promise.all([
      stoa.purchases.list(RUNNABLE, { signal }).page(),
      stoa.products.list({ author: "me", ...RUNNABLE }, { signal }).page(),
    ]);
    return new Map([
      ...purchases.data.map(({ product }) => [product.id, product.title] as const),
      ...own.data.map(({ id, title }) => [id, title] as const),
    ]);
  },
});

export const sharedRunQuery = (token: string) =>
  queryOptions({
    queryKey: ["shared-run", token],
    queryFn: async ({ signal }) => await stoa.sharedRuns.get(token, { signal }),
  });

/** The filters of the list of runs, as the address has them. */
export interface RunsSearch {
  status?: AiExecutionsListQuery["status"];
  type?: "prompt" | "workflow" | undefined;
  page?: number | undefined;
}

export const toRunFilters = ({ page = 1, status, type }: RunsSearch): AiExecutionsListQuery => ({
  ...(status !== undefined && { status }),
  ...(type !== undefined && { type: type.toUpperCase() }),
  page,
  limit: RUNS_PER_PAGE,
});
