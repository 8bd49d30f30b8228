import type { Context } from "../../core/context.ts";
import type { ProviderAnswer, ProviderId } from "../../integrations/ai-providers/ai-provider.ts";
import { priceUsage } from "../provider-keys/cost.ts";
import { addUsage } from "./run-state.ts";
import type { CallUsage } from "./step-result.ts";

export interface CountedCall {
  provider: ProviderId;
  /** The model that the answer names. */
  model: string;
  askedModel: string;
  usage: ProviderAnswer["usage"];
}

/** Sums the usage of all calls of one attempt of a step, including failed calls whose usage the provider reported. */
export class UsageTotal {
  readonly #ctx: Context;
  callUsage: CallUsage | undefined;

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  /** Returns the cost of the call in USD. */
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
