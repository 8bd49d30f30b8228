import "./score-card.css";
import type { ScoreCard } from "@stoa/sdk";
import { lazy } from "react";
import { AlertIcon } from "../../components/icons.tsx";
import { Part } from "../../components/part.tsx";
import { ScoreBar } from "../../components/score-bar.tsx";
import { Time } from "../../components/time.tsx";
import { formatDuration } from "../../lib/duration.ts";
import { formatCost, formatCount } from "../../lib/format.ts";
import { providerName } from "../../lib/providers.ts";
import { rangeOf, wholePercent } from "../../lib/rates.ts";
import { Gain, RateText } from "./score-figures.tsx";

const JudgedScores = lazy(() => import("./judged-scores.tsx"));

type Model = ScoreCard["models"][number];
type Regression = ScoreCard["regressions"][number];

/** What the seller's tests measured, each rate with its interval. */
export function ScoreCardSection({ card }: { card: ScoreCard }) {
  const cases = card.visibleCases + card.hiddenCases;
  return (
    <section className="beam" aria-labelledby="score-card">
      <div className="row between wrap">
        <h2 className="h2" id="score-card">
          Score card
        </h2>
        <span className="soft sm">
          The seller’s {formatCount(cases)} test {cases === 1 ? "case" : "cases"}, {formatCount(card.repeats)}{" "}
          {card.repeats === 1 ? "run" : "runs"} each, <Time iso={card.evaluatedAt} isDay />
        </span>
      </div>
      {card.regressions.map((regression) => (
        <RegressionStrip key={`${regression.provider} ${regression.model}`} regression={regression} />
      ))}
      <table className="score-card">
        <thead>
          <tr>
            <th>Model</th>
            <th>Pass rate, 95 % interval</th>
            <th className="r">Rate</th>
            <th className="r">Adds</th>
            <th className="r">Cost a run</th>
            <th className="r">Median time</th>
          </tr>
        </thead>
        <tbody>
          {card.models.map((model) => (
            <ModelRow key={`${model.provider} ${model.model}`} model={model} />
          ))}
        </tbody>
      </table>
      <Legend card={card} />
      {card.judge && (
        <Part>
          <JudgedScores card={card} judge={card.judge} />
        </Part>
      )}
      <Notes card={card} />
      <Verification card={card} />
    </section>
  );
}

function RegressionStrip({ regression }: { regression: Regression }) {
  const { provider, model, cause, since, before, after } = regression;
  if (!before.rate || !after.rate) return null;
  return (
    <p className="strip warning">
      <AlertIcon size={20} />
      <span>
        <b dir="auto">{model ?? "The workflow"}</b>
        {provider !== null && ` of ${providerName(provider)}`} passes {wholePercent(after.rate.value)} % (
        {rangeOf(after.rate, after.n)}) of the same tests since <Time iso={since} isDay />
        {cause === "version" ? `; version ${before.version} passed ` : "; before it passed "}
        {wholePercent(before.rate.value)} % ({rangeOf(before.rate, before.n)}).
      </span>
    </p>
  );
}

function ModelRow({ model }: { model: Model }) {
  const { rate, baseline, medianCost, medianLatencyMs } = model;
  const bare = baseline?.rate ?? null;
  return (
    <tr>
      <td>
        <b dir="auto">{model.model ?? "The models of its steps"}</b>
        <br />
        <span className="xs soft">
          {model.isSandbox
            ? "Practice provider, not a model"
            : model.provider !== null && providerName(model.provider)}
        </span>
      </td>
      <td>{rate && <ScoreBar rate={rate} bare={bare} />}</td>
      <td className="r">{rate ? <RateText rate={rate} n={model.n} /> : "no verdict"}</td>
      <td className="r" data-label="Adds">
        <Gain product={model} />
      </td>
      <td className="r" data-label="Cost a run">
        {medianCost === null ? "not known" : formatCost(medianCost)}
      </td>
      <td className="r soft" data-label="Median time">
        {medianLatencyMs === null ? "not known" : formatDuration(medianLatencyMs / 1_000)}
      </td>
    </tr>
  );
}

/** Of a workflow: the model of its last call, alone. */
const bareOf = ({ models }: ScoreCard) => models.find(({ provider }) => provider === null)?.baseline;

const Legend = ({ card }: { card: ScoreCard }) => (
  <p className="score-legend xs soft">
    <span>
      <i className="rate" /> pass rate
    </span>
    <span>
      <i className="interval" /> 95 % interval
    </span>
    {card.models.some(({ baseline }) => baseline?.rate) && (
      <span dir="auto">
        <i className="bare" /> {bareOf(card)?.model ?? "same model"} without this product
      </span>
    )}
  </p>
);

/** The link is a plain download: visitors may read the proof, and a signed-in reader sends the cookie. */
function Verification({
  card: { evaluationId, repeats, visibleCases, hiddenCases, models },
}: {
  card: ScoreCard;
}) {
  const columns = models.length + models.filter(({ baseline }) => baseline).length;
  const runs = (visibleCases + hiddenCases) * repeats * columns;
  const file = `${evaluationId}-proof.json`;
  return (
    <div className="score-proof sm">
      <details>
        <summary className="link">Verify the receipts of {formatCount(runs)} runs</summary>
        <p>
          <a className="link" href={`/v1/evaluations/${evaluationId}/proof`} download={file}>
            Download the signed proof
          </a>
          , and compute every number again with the command line:
        </p>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must reach it. */}
        <pre className="codeblock wrap" tabIndex={0}>
          stoa verify-evaluation {file} --base-url {location.origin}/v1
        </pre>
      </details>
      <a className="link" href="/docs/guides/evaluations">
        How scores are made
      </a>
    </div>
  );
}

/** What the figures are made of, and what they are not. */
const Notes = ({ card }: { card: ScoreCard }) => (
  <ul className="score-notes sm soft">
    {card.models.map((model) => (
      <PowerNote key={`${model.provider} ${model.model}`} model={model} />
    ))}
    {card.hiddenCases > 0 && (
      <li>
        {card.hiddenCases === 1 ? "One case is hidden" : `${formatCount(card.hiddenCases)} cases are hidden`},
        so that prompts are not fitted to the tests.
      </li>
    )}
    {card.judgedCases > 0 && !card.judge && (
      <li>
        {card.judgedCases === 1 ? "One case has" : `${formatCount(card.judgedCases)} cases have`} rubrics,
        which only a model could judge. None did.
      </li>
    )}
    <li>
      Version {card.version}.{" "}
      {card.evaluations === 1
        ? "It was evaluated once."
        : `It was evaluated ${formatCount(card.evaluations)} times; the newest complete result is shown.`}
    </li>
  </ul>
);

function PowerNote({ model: { model, passPowerK, n } }: { model: Model }) {
  const { k, rate } = passPowerK;
  if (!rate || k < 2) return null;
  return (
    <li>
      <span dir="auto">{model ?? "Its steps’ models"}</span>: {wholePercent(rate.value)} % (
      {rangeOf(rate, n / k)}) of the cases pass in all of {formatCount(k)} runs.
    </li>
  );
}
