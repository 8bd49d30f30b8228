import type { AiModel } from "@stoa/sdk";
import { useQueries } from "@tanstack/react-query";
import { formatCost } from "../../lib/format.ts";
import { costOf, EXPECTED_TOKENS, estimateTokens } from "../../lib/run-costs.ts";
import type { DefinedStep } from "../../lib/workflow-definition.ts";
import { modelsQuery } from "../../queries/running.ts";

interface TestCostProps {
  /** Those that the run starts. */
  steps: readonly DefinedStep[];
  /** Providers whose calls the sandbox answers. */
  sandboxed: ReadonlySet<string>;
}

/** The expected cost of a test run. POST /ai/estimate knows only what is saved, and whole runs. */
export function TestCost({ steps, sandboxed }: TestCostProps) {
  const charged = steps.filter(({ provider, do: work }) => {
    const called = provider ?? work?.provider;
    return called !== undefined && called !== "sandbox" && !sandboxed.has(called);
  });
  const providers = [...new Set(charged.map((step) => step.provider ?? step.do?.provider ?? ""))];
  const lists = useQueries({ queries: providers.map((provider) => modelsQuery(provider)) });
  if (lists.some(({ isPending }) => isPending)) return null;
  const models = lists.flatMap(({ data }) => data ?? []);
  const costs = charged.map((step) => expectedCallCost(step, models));
  const runsProduct = steps.some(({ type, do: work }) => (work?.type ?? type) === "product");
  const cost = runsProduct ? null : costs.reduce<number | null>(addCost, 0);
  const hasMap = charged.some(({ do: work }) => work !== undefined);
  return (
    <p className="sm">
      <b className="m">Estimate:</b>{" "}
      {cost === null
        ? "price unknown."
        : cost === 0
          ? "nothing is charged."
          : `about ${formatCost(cost)}, for answers of ${EXPECTED_TOKENS} tokens${hasMap ? " and one item of each map" : ""}.`}
    </p>
  );
}

const addCost = (sum: number | null, cost: number | null): number | null =>
  sum === null || cost === null ? null : sum + cost;

/** Of one call, with the prompt as it is written: the outputs of other steps are not known yet. null: no price is known. */
function expectedCallCost({ do: inner, ...step }: DefinedStep, models: readonly AiModel[]): number | null {
  const { provider, model, messages = [], options } = inner ?? step;
  // The default model of a provider is the first of its list.
  const priced = models.find((one) => one.provider === provider && (model === undefined || one.id === model));
  const text = messages.map(({ content }) => content ?? "").join("\n");
  const answer = Math.min(options?.maxTokens ?? EXPECTED_TOKENS, EXPECTED_TOKENS);
  return costOf(priced, estimateTokens(text), answer);
}
