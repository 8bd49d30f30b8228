import type {
  AiModel,
  EstimatedCall,
  EstimateExecution,
  ExecutionDetail,
  ProductDetail,
  WorkflowStep,
} from "@stoa/sdk";
import { useQueries, useQuery } from "@tanstack/react-query";
import { type CostRange, expectedCost } from "../../lib/run-costs.ts";
import { estimateQuery, modelsQuery } from "../../queries/running.ts";
import type { ShownStep } from "./step-state.ts";

interface WorkflowCosts {
  /** Of the whole run, from its prompts' texts alone to answers of the expected length; null: no price is known. */
  range: CostRange | null;
  /** Of the steps that have not completed. */
  rest: number | null;
}

/** What the steps of a run are expected to cost. A provider that the run replaced by the sandbox costs nothing. */
export function useWorkflowCosts(
  product: ProductDetail | undefined,
  execution: ExecutionDetail,
  steps: ShownStep[],
): WorkflowCosts {
  const { variables, productVersion } = execution;
  const mayRun = product !== undefined && product.access.reason !== "none" && variables !== null;
  const body: EstimateExecution = {
    productId: execution.productId,
    variables: variables ?? {},
    ...(product?.version !== productVersion && { options: { version: productVersion } }),
  };
  const calls = useEstimatedCalls(body, mayRun);
  const replaced = (call: EstimatedCall) => {
    const ran = steps.find(({ id }) => id === call.stepId);
    return (ran?.items[0]?.provider ?? ran?.run?.provider ?? call.provider) === "sandbox";
  };
  const isSandboxed = calls.data?.some(({ call }) => replaced(call)) ?? false;
  /** Of a map, the number of its items is known once it runs. */
  const cost = ({ call, expected }: ExpectedCall, isOpen: (item: WorkflowStep) => boolean): Cost => {
    // Steps that have not started use the keys of those that have.
    if (isSandboxed) return { low: 0, high: 0 };
    const items = steps.find(({ id }) => id === call.stepId)?.items ?? [];
    const leastCalls = Math.max(1, call.calls.min);
    const count = items.length > 0 ? items.filter(isOpen).length : leastCalls;
    return { low: call.cost.min, high: expected === null ? null : (expected / leastCalls) * count };
  };
  const done = new Set(steps.flatMap(({ id, look }) => (look === "done" || look === "skip" ? [id] : [])));
  const open = calls.data?.filter(({ call }) => !done.has(call.stepId ?? ""));
  return {
    range: sum(calls.data?.map((call) => cost(call, () => true))),
    rest: sum(open?.map((call) => cost(call, ({ status }) => status !== "completed")))?.high ?? null,
  };
}

type Cost = { low: number | null; high: number | null };

const sum = (costs: Cost[] | undefined): CostRange | null =>
  costs === undefined
    ? null
    : costs.reduce<CostRange | null>(
        (all, { low, high }) =>
          all === null || low === null || high === null
            ? null
            : { low: all.low + Math.min(low, high), high: all.high + high },
        { low: 0, high: 0 },
      );

interface ExpectedCall {
  call: EstimatedCall;
  /** USD; null: no price is known. */
  expected: number | null;
}

/** The calls of a workflow's steps, with their expected cost by the price list. */
export function useEstimatedCalls(
  body: EstimateExecution,
  isEnabled: boolean,
): { data: ExpectedCall[] | undefined; error: unknown } {
  const { data, error } = useQuery({ ...estimateQuery(body), enabled: isEnabled });
  const providers = [...new Set(data?.calls.flatMap(({ provider }) => provider ?? []))];
  const lists = useQueries({ queries: providers.map((provider) => modelsQuery(provider)) });
  if (!data || lists.some(({ isPending }) => isPending)) return { data: undefined, error };
  const models: AiModel[] = lists.flatMap(({ data }) => data ?? []);
  const byProvider = (call: EstimatedCall) => models.filter(({ provider }) => provider === call.provider);
  return {
    data: data.calls.map((call) => ({ call, expected: expectedCost(call, byProvider(call), call.model) })),
    error,
  };
}
