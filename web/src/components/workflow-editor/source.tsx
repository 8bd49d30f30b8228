import "./source.css";
import { json } from "@codemirror/lang-json";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { RangeSetBuilder, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useMemo, useRef } from "react";
import { afterFrame } from "../../lib/after-frame.ts";
import { findPlace } from "../../lib/json-place.ts";
import { indexOfStep, parseText, stepsOf } from "../../lib/workflow-document.ts";
import type { WorkflowProblem } from "../../lib/workflow-problems.ts";
import { TextEditor } from "../text-editor.tsx";
import { type Selection, useEditor } from "./editor-context.ts";

const setProblems = StateEffect.define<readonly WorkflowProblem[]>();

/** The lines with problems, and what is wrong in them. */
const problemMarks = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, transaction) {
    const shown = transaction.effects.find((effect) => effect.is(setProblems));
    if (!shown) return marks.map(transaction.changes);
    const builder = new RangeSetBuilder<Decoration>();
    const { doc } = transaction.state;
    const sorted = (shown.value as WorkflowProblem[]).toSorted((a, b) => a.place.from - b.place.from);
    let line = -1;
    for (const { place, sentence } of sorted) {
      if (place.to > doc.length) continue;
      const start = doc.lineAt(place.from).from;
      if (start > line) builder.add(start, start, Decoration.line({ class: "cm-problem-line" }));
      line = start;
      if (place.to > place.from)
        builder.add(
          place.from,
          place.to,
          Decoration.mark({ class: "cm-problem", attributes: { title: sentence } }),
        );
    }
    return builder.finish();
  },
  provide: (field) => EditorView.decorations.from(field),
});

const COLORS = HighlightStyle.define([
  { tag: tags.propertyName, color: "light-dark(#5b2a8a, #cfa8ff)" },
  { tag: tags.string, color: "light-dark(#17653a, #8fd9ac)" },
  { tag: [tags.number, tags.bool, tags.null], color: "light-dark(#8a4b00, #f0bd70)" },
]);

const EXTENSIONS = [json(), syntaxHighlighting(COLORS), problemMarks];

const SETUP = {
  // The editor's own history has the source and the canvas.
  history: false,
  historyKeymap: false,
  // Both would trap keys that belong to the page.
  searchKeymap: false,
  lintKeymap: false,
  highlightActiveLine: false,
  // Its colors are for white pages.
  syntaxHighlighting: false,
};

/** The definition as text. What is typed changes the canvas as soon as it can be read. */
export default function Source() {
  const { document: edited, problems, selection, execute, select } = useEditor();
  const editor = useRef<EditorView>(null);
  useEffect(() => {
    editor.current?.dispatch({ effects: setProblems.of(problems) });
  }, [problems]);
  // After the form of the step, which a person waits for: the editor reads the layout of the page.
  useEffect(() => afterFrame(() => scrollToStep(editor.current, selection)), [selection]);
  const extensions = useMemo(
    () => [
      ...EXTENSIONS,
      EditorView.domEventHandlers({
        click: (_event, view) => {
          const id = stepAt(view.state.doc.toString(), view.state.selection.main.head);
          if (id !== null) select(id);
        },
      }),
    ],
    [select],
  );
  return (
    <section className="workflow-source" aria-label="Source of the workflow">
      <TextEditor
        label="Source"
        value={edited.text}
        onChange={(text) => execute({ kind: "set-source", text }, "source")}
        extensions={extensions}
        setup={SETUP}
        onReady={(view) => {
          editor.current = view;
          view.dispatch({ effects: setProblems.of(problems) });
        }}
      />
    </section>
  );
}

function scrollToStep(view: EditorView | null, selection: Selection): void {
  const text = view?.state.doc.toString() ?? "";
  const index = indexOfStep(parseText(text), selection ?? "");
  // A person who types is at the right place.
  if (!view || index < 0 || view.hasFocus) return;
  const { from } = findPlace(text, ["steps", index]);
  view.dispatch({ effects: EditorView.scrollIntoView(from, { y: "start", yMargin: 40 }) });
}

/** The step in whose text a place is. */
function stepAt(text: string, offset: number): string | null {
  const definition = parseText(text);
  const found = stepsOf(definition).find(({ id }) => {
    const { from, to } = findPlace(text, ["steps", indexOfStep(definition, id)]);
    return from <= offset && offset <= to;
  });
  return found?.id ?? null;
}
