import { useState } from "react";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { type Draft, type DraftField, FIELDS } from "./draft-fields.ts";
import { useEditor } from "./editor-context.tsx";
import type { Conflict, Side } from "./merge-drafts.ts";
import { WordDiff } from "./word-diff.tsx";

const SIDES: [Side, string][] = [
  ["mine", "Yours"],
  ["theirs", "Theirs"],
  ["base", "Before both"],
];

/** Both sides changed the same fields: the person chooses for each. All other changes of both sides are kept. */
export function ConflictDialog({ conflict }: { conflict: Conflict }) {
  const { store } = useEditor();
  const [choices, setChoices] = useState<Partial<Record<DraftField, Side>>>({});
  const isComplete = conflict.fields.every((field) => choices[field]);
  const chooseAll = (side: Side) =>
    setChoices(Object.fromEntries(conflict.fields.map((field) => [field, side])));
  return (
    <Dialog title="Changed here and elsewhere">
      <p className="soft">
        Another tab or person changed what you changed. Choose which text stays. Nothing is stored until you
        do.
      </p>
      <div className="row wrap">
        <button type="button" className="btn s" onClick={() => chooseAll("mine")}>
          All yours
        </button>
        <button type="button" className="btn s" onClick={() => chooseAll("theirs")}>
          All theirs
        </button>
      </div>
      {conflict.fields.map((field) => (
        <fieldset key={field} className="plain stack editor-conflict" data-conflict={field}>
          <legend className="m">{FIELDS[field].label}</legend>
          {SIDES.map(([side, label]) => (
            <label key={side} className="choice">
              <input
                type="radio"
                className="radio"
                name={`side of ${field}`}
                checked={choices[field] === side}
                onChange={() => setChoices({ ...choices, [field]: side })}
              />
              <span data-side={side}>
                <b className="sm">{label}</b>
                <WordDiff before={textOf(conflict.base, field)} after={textOf(conflict[side], field)} />
              </span>
            </label>
          ))}
        </fieldset>
      ))}
      <DialogButtons>
        <button
          type="button"
          className="btn primary"
          disabled={!isComplete}
          onClick={() => store.resolve(choices)}
        >
          Keep what is chosen
        </button>
      </DialogButtons>
    </Dialog>
  );
}

function textOf(draft: Draft, field: DraftField): string {
  const value = draft[field];
  if (typeof value === "string") return value;
  const isList = Array.isArray(value) && value.every((item) => typeof item === "string");
  return isList ? value.join("\n") : JSON.stringify(value, null, 2);
}
