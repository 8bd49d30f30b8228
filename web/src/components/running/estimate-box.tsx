import type { AiModel, Estimate } from "@stoa/sdk";
import { describeError } from "../../lib/errors.ts";
import { formatCount } from "../../lib/format.ts";
import { describeModelPrice } from "../../lib/model-price.ts";
import { providerName } from "../../lib/providers.ts";
import { rangeOf } from "../../lib/run-costs.ts";
import { describeRange } from "./tally.tsx";

interface EstimateBoxProps {
  estimate: Estimate | undefined;
  error: unknown;
  models: AiModel[];
  isAnswerLimited: boolean;
}

/** What a prompt's run would cost, before it runs. */
export function EstimateBox({ estimate, error, models, isAnswerLimited }: EstimateBoxProps) {
  const call = estimate?.calls[0];
  if (error) return <p className="est sm soft">No estimate: {describeError(error).text}</p>;
  if (!estimate || !call)
    return <p className="est sm soft">The estimate shows here when the form is complete.</p>;
  const { provider, promptTokens, completionTokens, fits } = call;
  const range = rangeOf(estimate);
  const price = describeModelPrice(models.find(({ id }) => id === call.model));
  return (
    <div className="est">
      <div className="row between wrap">
        <span className="m">Estimate</span>
        <span className="num b">{range ? describeRange(range) : "Price unknown"}</span>
      </div>
      <p className="xs soft">
        {formatCount(promptTokens.min)} tokens in, up to {formatCount(completionTokens.max ?? 0)} out
        {price !== "" && price !== "free" && `, at ${price} per million`}.{" "}
        {provider === "sandbox" || provider === null
          ? "Nothing is charged."
          : `Charged by ${providerName(provider)} to your key.${isAnswerLimited ? "" : " A longer answer costs more."}`}
      </p>
      {fits === false && (
        <p className="sm warning">
          The prompt and its answer do not fit into the model's {formatCount(call.contextWindow ?? 0)} tokens.
        </p>
      )}
    </div>
  );
}
