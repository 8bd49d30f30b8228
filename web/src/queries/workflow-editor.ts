import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";

const MAX_PRODUCTS = 100;
const MAX_RUNS = 20;

/** With the version that a change names, so that a change in another tab is not lost. */
export const editedProductQuery = (id: string) =>
  queryOptions({
    queryKey: ["edited-workflow", id],
    queryFn: async ({ signal }) => {
      const { data, headers } = await stoa.products.get(id, {}, { signal }).withResponse();
      return { product: data, etag: headers.get("etag") ?? "" };
    },
    // The editor holds the text; a reload in the background must not replace what it began with.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });

/** `values`: also those of a step's expressions, or without a step of the result, in an earlier run. */
export const checkQuery = (content: string, values: { stepId?: string; executionId: string } | null) =>
  queryOptions({
    queryKey: ["workflow-check", content, values],
    queryFn: async ({ signal }) =>
      await stoa.ai.workflows.check({ content, ...(values && { values }) }, { signal }),
    placeholderData: keepPreviousData,
    staleTime: 300_000,
    gcTime: 10_000,
  });

/** The latest runs of a workflow. */
export const workflowRunsQuery = (productId: string) =>
  queryOptions({
    queryKey: ["executions", { productId, limit: MAX_RUNS }],
    queryFn: async ({ signal }) =>
      (await stoa.ai.executions.list({ productId, limit: MAX_RUNS }, { signal }).page()).data,
  });

/** What a step can run: the account's own products. */
export const ownProductsQuery = queryOptions({
  queryKey: ["own-products-to-run"],
  queryFn: async ({ signal }) =>
    (await stoa.products.list({ author: "me", limit: MAX_PRODUCTS }, { signal }).page()).data,
});
