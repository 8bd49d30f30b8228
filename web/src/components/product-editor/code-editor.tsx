import { autocompletion, type CompletionContext } from "@codemirror/autocomplete";
import { type Extension, RangeSetBuilder } from "@codemirror/state";
import {
  Decoration,
  type DecorationSet,
  EditorView,
  ViewPlugin,
  type ViewUpdate,
  WidgetType,
} from "@codemirror/view";
import { INVISIBLE_IN_TEXT } from "@stoa/contract/invisible-characters";
import { listTemplateTags } from "@stoa/contract/prompt-template";
import type { Variable } from "@stoa/sdk";
import { useMemo, useRef } from "react";
import { hasDetails } from "../../lib/prompt-variables.ts";
import { TextEditor } from "../text-editor.tsx";

export interface EditorHandle {
  /** Selects a part of the text and moves the focus there. */
  show: (place: { from: number; to: number }) => void;
}

interface CodeEditorProps {
  value: string;
  format: "text" | "messages";
  variables: Variable[];
  onChange: (value: string) => void;
  onReady: (handle: EditorHandle) => void;
}

// Stable, since a change of any of them would set the editor up anew at each key.
const SETUP = {
  history: false,
  historyKeymap: false,
  foldGutter: false,
  highlightSpecialChars: false,
  searchKeymap: false,
  autocompletion: false,
  closeBrackets: false,
  bracketMatching: false,
  highlightSelectionMatches: false,
};

/** The text of the prompt: variables and hidden characters are marked, and the names of variables are offered. */
export default function CodeEditor({ value, format, variables, onChange, onReady }: CodeEditorProps) {
  const latest = useRef(variables);
  latest.current = variables;
  const extensions = useMemo(() => extensionsFor(() => latest.current), []);
  return (
    <TextEditor
      label="Prompt text"
      value={value}
      onChange={onChange}
      extensions={extensions}
      setup={SETUP}
      placeholder={
        format === "text" ? "Write what the model should do. {{topic}} asks the buyer for a topic." : ""
      }
      onReady={(view) =>
        onReady({
          show: ({ from, to }) => {
            const end = view.state.doc.length;
            view.dispatch({
              selection: { anchor: Math.min(from, end), head: Math.min(to, end) },
              scrollIntoView: true,
            });
            view.focus();
          },
        })
      }
    />
  );
}

const extensionsFor = (variables: () => Variable[]): Extension[] => [
  EditorView.contentAttributes.of({ spellcheck: "true", dir: "auto" }),
  autocompletion({ override: [(context) => completeVariable(context, variables())], icons: false }),
  marksOf(variables),
];

/** After two braces: the names that the prompt has already. */
function completeVariable(context: CompletionContext, variables: Variable[]) {
  const before = context.matchBefore(/\{\{[ \t]*\w*/);
  if (!before || variables.length === 0) return null;
  const from = before.from + (/^\{\{[ \t]*/.exec(before.text)?.[0].length ?? 2);
  const isClosed = context.state.sliceDoc(context.pos, context.pos + 2) === "}}";
  return {
    from,
    options: variables.map(({ name, description }) => ({
      label: name,
      ...(description && { detail: description }),
      apply: isClosed ? name : `${name}}}`,
    })),
    validFor: /^\w*$/,
  };
}

const KNOWN = Decoration.mark({ class: "editor-mark" });
const VAGUE = Decoration.mark({ class: "editor-mark is-vague" });
/** In the place of a character that cannot be seen, or that turns the text around it. */
class HiddenCharacter extends WidgetType {
  readonly #point: string;
  constructor(point: string) {
    super();
    this.#point = point;
  }
  override eq(other: HiddenCharacter): boolean {
    return other.#point === this.#point;
  }
  toDOM(): HTMLElement {
    const chip = document.createElement("span");
    chip.className = "editor-hidden";
    chip.textContent = this.#point;
    chip.title = `Hidden character ${this.#point}`;
    return chip;
  }
}
const hidden = (point: string) => Decoration.replace({ widget: new HiddenCharacter(point) });

const marksOf = (variables: () => Variable[]): Extension =>
  ViewPlugin.fromClass(
    class {
      decorations: DecorationSet;
      constructor(view: EditorView) {
        this.decorations = findMarks(view.state.doc.toString(), variables());
      }
      update(update: ViewUpdate) {
        if (update.docChanged || update.focusChanged)
          this.decorations = findMarks(update.state.doc.toString(), variables());
      }
    },
    { decorations: (plugin) => plugin.decorations },
  );

/** Browsers take seconds to type over a line with thousands of elements in it. */
const MOST_MARKED_TAGS = 1_000;

function findMarks(text: string, variables: Variable[]): DecorationSet {
  const tags = listTemplateTags(text).slice(0, MOST_MARKED_TAGS);
  const marks = [
    ...tags.map(({ from, to, variable }) => {
      const declared = variables.find(({ name }) => name === variable.name);
      const isVague =
        variable.default === undefined && !(declared && (hasDetails(declared) || declared.default));
      return { from, to, mark: isVague ? VAGUE : KNOWN };
    }),
    ...[...text.matchAll(INVISIBLE_IN_TEXT)].map((match) => {
      const point = `U+${(match[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
      return { from: match.index, to: match.index + match[0].length, mark: hidden(point) };
    }),
  ].toSorted((one, other) => one.from - other.from || one.to - other.to);
  const builder = new RangeSetBuilder<Decoration>();
  for (const { from, to, mark } of marks) builder.add(from, to, mark);
  return builder.finish();
}
