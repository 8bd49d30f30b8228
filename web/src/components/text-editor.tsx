import { EditorState, type Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import CodeMirror, { type BasicSetupOptions, type ReactCodeMirrorRef } from "@uiw/react-codemirror";
import { useCallback, useLayoutEffect, useMemo, useRef, useState } from "react";
import { MOST_CHARACTERS } from "../lib/content-limits.ts";
import { formatCount } from "../lib/format.ts";
import { showError } from "../lib/toasts.ts";

interface TextEditorProps {
  label: string;
  value: string;
  onChange: (text: string) => void;
  /** Stable: a change sets the editor up anew. */
  extensions: Extension[];
  setup: BasicSetupOptions;
  placeholder?: string;
  /** Once, with the text in place. */
  onReady: (view: EditorView) => void;
}

/** CodeMirror for a text that a page owns, with the page's undo. */
export function TextEditor({
  label,
  value,
  onChange,
  extensions,
  setup,
  placeholder = "",
  onReady,
}: TextEditorProps) {
  const editor = useRef<ReactCodeMirrorRef>(null);
  // The component would hold back a text that comes while a person types, and an undo is one.
  const [first] = useState(value);
  const latest = useRef({ value, onChange });
  latest.current = { value, onChange };
  useLayoutEffect(() => {
    const view = editor.current?.view;
    if (view) replaceText(view, value);
  }, [value]);
  const change = useCallback((text: string) => {
    if (text !== latest.current.value) latest.current.onChange(text);
  }, []);
  const all = useMemo(
    () => [
      EditorView.cspNonce.of(nonce),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": label }),
      refuseLongTexts,
      ...extensions,
    ],
    [label, extensions],
  );
  return (
    <CodeMirror
      ref={editor}
      value={first}
      theme="none"
      indentWithTab={false}
      basicSetup={setup}
      extensions={all}
      placeholder={placeholder}
      onChange={change}
      onCreateEditor={(view) => {
        replaceText(view, latest.current.value);
        onReady(view);
      }}
    />
  );
}

const nonce = document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce ?? "";

/** Megabytes that are pasted would block the page, and the service would refuse them. */
const refuseLongTexts = EditorState.changeFilter.of((transaction) => {
  const { length } = transaction.newDoc;
  const isLonger = length > MOST_CHARACTERS && length > transaction.startState.doc.length;
  if (!isLonger || !transaction.isUserEvent("input")) return true;
  const limit = `it would have ${formatCount(length)} characters, and may have at most ${formatCount(MOST_CHARACTERS)}.`;
  showError("The text was not inserted", limit);
  return false;
});

/** Only the part that differs, so that the cursor stays where it is. */
function replaceText(view: EditorView, value: string): void {
  const shown = view.state.doc.toString();
  // As the editor has it: otherwise a prompt from elsewhere would count as changed when it opens.
  const text = value.replace(/\r\n?/g, "\n");
  if (shown === text) return;
  const most = Math.min(shown.length, text.length);
  let from = 0;
  while (from < most && shown[from] === text[from]) from++;
  let rest = 0;
  while (rest < most - from && shown.at(-1 - rest) === text.at(-1 - rest)) rest++;
  view.dispatch({
    changes: { from, to: shown.length - rest, insert: text.slice(from, text.length - rest) },
  });
}
