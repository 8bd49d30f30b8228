import { type ApiError, ruleViolation } from "../../core/errors.ts";
import { unknownPriceReason } from "../prompt-runs/max-cost.ts";
import { type ExpectedCall, estimateUsage, priceUsage, roundUsd } from "../provider-keys/cost.ts";

/** The cost limit of a run, in USD. It counts the cost so far and the expected cost of open calls. */
export class CostLimit {
  readonly #maxUsd: number;
  #spentUsd: number;
  #expectedUsd = 0;
  /** The refusal that fails the run; null: none. */
  refusal: ApiError | null = null;

  constructor(maxUsd: number, spentUsd: number) {
    this.#maxUsd = maxUsd;
    this.#spentUsd = spentUsd;
  }

  /** Reserves the expected cost of a call. Throws VALIDATION_ERROR if it exceeds the limit or the price is unknown. */
  reserve(call: ExpectedCall): number {
    const { estimatedCost, costKnown } = priceUsage({ ...call, usage: estimateUsage(call) });
    if (!costKnown) throw this.#refused(unknownPriceReason(call));
    if (estimatedCost > this.left)
      throw this.#refused(
        `would be passed: ${this.left} USD are left, and the next call is expected to cost ${estimatedCost}. Start the run again with a higher maxCost, or lower options.maxTokens of its steps (500 are expected without it)`,
      );
    this.#expectedUsd += estimatedCost;
    return estimatedCost;
  }

  release(expectedUsd: number): void {
    this.#expectedUsd -= expectedUsd;
  }

  spend(usd: number): void {
    this.#spentUsd += usd;
  }

  get left(): number {
    return Math.max(0, roundUsd(this.#maxUsd - this.#spentUsd - this.#expectedUsd));
  }

  #refused(reason: string): ApiError {
    this.refusal = ruleViolation("options.maxCost", reason);
    return this.refusal;
  }
}
