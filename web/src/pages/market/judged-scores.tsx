import type { ScoreCard } from "@stoa/sdk";
import { ScoreBar } from "../../components/score-bar.tsx";
import { formatCount } from "../../lib/format.ts";
import { providerName } from "../../lib/providers.ts";
import { Gain, RateText } from "./score-figures.tsx";

interface JudgedScoresProps {
  card: ScoreCard;
  judge: NonNullable<ScoreCard["judge"]>;
}

/** Apart from the table above: a model's opinions, not rules. */
export default function JudgedScores({ card, judge }: JudgedScoresProps) {
  return (
    <section className="judged-scores" aria-labelledby="judged-scores">
      <h3 className="h3" id="judged-scores">
        Judged by <span dir="auto">{judge.model}</span>
      </h3>
      <p className="sm soft">
        {judge.isSandbox
          ? "A practice provider, not a model, judged"
          : `This model of ${providerName(judge.provider)} judged`}{" "}
        the outputs by the seller’s rubrics in {formatCount(card.judgedCases)}{" "}
        {card.judgedCases === 1 ? "case" : "cases"}.{judge.embedding && describeEmbedding(judge.embedding)}{" "}
        These figures are no part of the pass rate above. Rubrics: hash{" "}
        <code>{judge.rubricsHash.slice(0, 16)}…</code>
      </p>
      <table className="score-card">
        <thead>
          <tr>
            <th>Model</th>
            <th>Judged as passed, 95 % interval</th>
            <th className="r">Rate</th>
            <th className="r">Adds</th>
          </tr>
        </thead>
        <tbody>
          {card.models.map((model) => (
            <JudgedRow key={`${model.provider} ${model.model}`} model={model} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function describeEmbedding({ isSandbox, model }: NonNullable<JudgedScoresProps["judge"]["embedding"]>) {
  if (isSandbox) return " Similar texts were found by counting words, which is practice, not a model.";
  return (
    <>
      {" "}
      Similar texts were found by the embeddings of <span dir="auto">{model}</span>.
    </>
  );
}

function JudgedRow({ model: { model, judged } }: { model: ScoreCard["models"][number] }) {
  if (!judged) return null;
  const { rate, n, undecided, baseline } = judged;
  const bare = baseline?.rate ?? null;
  return (
    <tr>
      <td>
        <b dir="auto">{model ?? "The models of its steps"}</b>
        {undecided > 0 && (
          <>
            <br />
            <span className="xs soft">{formatCount(undecided)} undecided, counted as not passed</span>
          </>
        )}
      </td>
      <td>{rate && <ScoreBar rate={rate} bare={bare} name="Judged pass rate" />}</td>
      <td className="r">{rate ? <RateText rate={rate} n={n} /> : "no verdict"}</td>
      <td className="r" data-label="Adds">
        <Gain product={judged} />
      </td>
    </tr>
  );
}
