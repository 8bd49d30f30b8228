import type { CardScore } from "@stoa/sdk";
import { formatCost } from "../lib/format.ts";
import { rangeOf, wholePercent } from "../lib/rates.ts";
import { ScoreBar, SmallScoreBar } from "./score-bar.tsx";

const modelName = ({ model, isSandbox }: CardScore): string =>
  `${model ?? "models of its steps"}${isSandbox ? " (practice)" : ""}`;

const Interval = ({ rate, n }: Pick<CardScore, "rate" | "n">) => (
  <span className="num nowrap">{rangeOf(rate, n)}</span>
);

const Model = ({ score }: { score: CardScore }) => (
  <span className="xs soft cut" dir="auto" title={modelName(score)}>
    {modelName(score)}
  </span>
);

/** The rate of one model with its interval and number of runs, for a card in a grid. */
export function CardScoreLines({ score }: { score: CardScore }) {
  return (
    <>
      <span className="row sm card-score">
        <SmallScoreBar rate={score.rate} />
        <span className="num m nowrap">{wholePercent(score.rate.value)} %</span>
        <span className="soft">
          <Interval {...score} />
        </span>
      </span>
      <Model score={score} />
    </>
  );
}

/** The same beside a row, with the cost of a run. */
export function RowScore({ score }: { score: CardScore }) {
  const { rate, baseline, medianCost } = score;
  return (
    <span className="row-score">
      <span className="stack">
        <ScoreBar rate={rate} bare={baseline?.rate ?? null} />
        <Model score={score} />
      </span>
      <span className="stack xs soft">
        <b className="num">{wholePercent(rate.value)} %</b>
        <Interval {...score} />
        {medianCost !== null && <span className="num nowrap">{formatCost(medianCost)} a run</span>}
      </span>
    </span>
  );
}
