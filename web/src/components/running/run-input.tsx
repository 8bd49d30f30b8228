import { useState } from "react";

/** What a run was given; null: it is not stored. */
export function RunInput({ variables }: { variables: Record<string, unknown> | null }) {
  if (variables === null)
    return <p className="soft">The input is not stored. Texts of runs are erased after 30 days.</p>;
  const entries = Object.entries(variables);
  if (entries.length === 0) return <p className="soft">No input.</p>;
  return (
    <dl className="stack run-input">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt className="label">{name}</dt>
          <dd>
            <InputText text={typeof value === "string" ? value : JSON.stringify(value, null, 2)} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** Of a longer text, only the beginning stands there at first. */
const LONG = 1_200;
const BEGINNING = 800;

function InputText({ text }: { text: string }) {
  const [isWhole, showWhole] = useState(text.length <= LONG);
  return (
    <>
      <p className="preserve-lines" dir="auto">
        {isWhole ? text : `${text.slice(0, BEGINNING)}…`}
      </p>
      {!isWhole && (
        <button type="button" className="btn quiet s" onClick={() => showWhole(true)}>
          Show all
        </button>
      )}
    </>
  );
}
