import { type ApiError, ruleViolation } from "../../core/errors.ts";
import { unknownPriceReason } from "../prompt-runs/max-cost.ts";
import { type ExpectedCall, estimateUsage, priceUsage, roundUsd } from "../provider-keys/cost.ts";

/** What a run may cost, in USD: the cost so far plus the expected cost of open calls. */
export class CostLimit {
  readonly #mostUsd: number;
  #spentUsd: number;
  #expectedUsd = 0;
  /** Why nothing more is called; null: nothing was refused. */
  refusal: ApiError | null = null;

  constructor(mostUsd: number, spentUsd: number) {
    this.#mostUsd = mostUsd;
    this.#spentUsd = spentUsd;
  }

  /** Takes what a call is expected to cost, until it is released. Throws VALIDATION_ERROR where that is too much, or nobody knows it. */
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
    return Math.max(0, roundUsd(this.#mostUsd - this.#spentUsd - this.#expectedUsd));
  }

  #refused(reason: string): ApiError {
    this.refusal = ruleViolation("options.maxCost", reason);
    return this.refusal;
  }
}
