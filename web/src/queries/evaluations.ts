import { queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";

export const testSetQuery = (productId: string) =>
  queryOptions({
    queryKey: ["test-set", productId],
    queryFn: async ({ signal }) => await stoa.products.testSet.get(productId, { signal }),
  });

const SHOWN_EVALUATIONS = 10;
/** Of an evaluation that runs. */
export const EVALUATION_POLL_MS = 2_000;

/** The newest evaluations of a product. */
export const evaluationsQuery = (productId: string) =>
  queryOptions({
    queryKey: ["evaluations", productId],
    queryFn: async ({ signal }) =>
      (await stoa.evaluations.list(productId, { limit: SHOWN_EVALUATIONS }, { signal }).page()).data,
  });

export const evaluationQuery = (evaluationId: string) =>
  queryOptions({
    queryKey: ["evaluation", evaluationId],
    queryFn: async ({ signal }) => await stoa.evaluations.get(evaluationId, { signal }),
  });

/** Within which limits a product is evaluated again. */
export const reEvaluationQuery = (productId: string) =>
  queryOptions({
    queryKey: ["re-evaluation", productId],
    queryFn: async ({ signal }) => await stoa.reEvaluations.get(productId, { signal }),
  });
