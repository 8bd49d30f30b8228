import type { Context } from "../../core/context.ts";
import type { ProviderAnswer, ProviderId } from "../../integrations/ai-providers/ai-provider.ts";
import { priceUsage } from "../provider-keys/cost.ts";
import { addUsage } from "./run-state.ts";
import type { CallUsage } from "./step-result.ts";

export interface CountedCall {
  provider: ProviderId;
  /** As the answer names it. */
  model: string;
  askedModel: string;
  usage: ProviderAnswer["usage"];
}

/** What the calls of one attempt of a step were, summed: those that failed, too, where the provider counted. */
export class UsageTotal {
  readonly #ctx: Context;
  callUsage: CallUsage | undefined;

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  /** Answers what that costs, in USD. */
  add({ usage, ...call }: CountedCall): number {
    const { estimatedCost, costKnown } = priceUsage({ ...call, usage, at: this.#ctx.now() });
    const { promptTokens, completionTokens, estimated = false } = usage;
    const sum = { promptTokens, completionTokens, costUsd: estimatedCost, costKnown, estimated };
    this.callUsage = {
      provider: call.provider,
      model: call.model,
      usage: this.callUsage ? addUsage(this.callUsage.usage, sum) : sum,
    };
    return estimatedCost;
  }
}
