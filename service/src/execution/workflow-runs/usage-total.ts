import type { Context } from "../../core/context.ts";
import type { ProviderAnswer, ProviderId } from "../../integrations/ai-providers/ai-provider.ts";
import { costOf } from "../provider-keys/cost.ts";
import { addSpent } from "./run-state.ts";
import type { CallFacts } from "./step-result.ts";

export interface Counted {
  provider: ProviderId;
  /** As the answer names it. */
  model: string;
  askedModel: string;
  usage: ProviderAnswer["usage"];
}

/** What the calls of one attempt of a step were, summed: those that failed, too, where the provider counted. */
export class Tally {
  readonly #ctx: Context;
  facts: CallFacts | undefined;

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  /** Answers what that costs, in USD. */
  add({ usage, ...call }: Counted): number {
    const { estimatedCost, costKnown } = costOf({ ...call, usage, at: this.#ctx.now() });
    const { promptTokens, completionTokens, estimated = false } = usage;
    const spent = { promptTokens, completionTokens, costUsd: estimatedCost, costKnown, estimated };
    this.facts = {
      provider: call.provider,
      model: call.model,
      spent: this.facts ? addSpent(this.facts.spent, spent) : spent,
    };
    return estimatedCost;
  }
}
