import { useRef, useState } from "react";
import { AlertIcon } from "../../components/icons.tsx";
import { Part } from "../../components/part.tsx";
import type { EditorHandle } from "../../components/product-editor/code-editor.tsx";
import { CodeEditor } from "../../components/product-editor/lazy-code-editor.ts";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { readMessages } from "../../lib/prompt-variables.ts";
import { BuyerView } from "./buyer-view.tsx";
import type { Draft } from "./draft-fields.ts";
import { useEditor, useEditorSearch } from "./editor-context.tsx";
import { LintList } from "./lint-list.tsx";
import { TestRun } from "./test-run.tsx";
import { VariableList } from "./variable-list.tsx";

const PANES = [
  [undefined, "Write"],
  ["run", "Test run"],
  ["buyer", "Buyer's view"],
] as const;

/** The prompt, a run of it, and what buyers see. A narrow window shows one of them at a time. */
export function PromptTab() {
  const [{ pane }, setSearch] = useEditorSearch();
  return (
    <>
      <fieldset className="seg s editor-switch" aria-label="Pane">
        {PANES.map(([name, label]) => (
          <button
            key={label}
            type="button"
            aria-pressed={pane === name}
            onClick={() => void setSearch({ pane: name })}
          >
            {label}
          </button>
        ))}
      </fieldset>
      <div className={`editor-panes shows-${pane ?? "write"}`}>
        <PromptPane />
        <TestRun />
        <BuyerView />
      </div>
    </>
  );
}

function PromptPane() {
  const { draft, change, state, missing } = useEditor();
  const handle = useRef<EditorHandle | null>(null);
  const [openVariable, setOpenVariable] = useState<string | null>(null);
  const error = state.errors.content ?? missing.content;
  return (
    <section className="editor-pane editor-write" aria-label="Prompt">
      <div className="editor-head">
        <h2 className="h3">Prompt</h2>
        <span className="grow" />
        <fieldset className="seg s" aria-label="Form of the prompt">
          <button
            type="button"
            aria-pressed={draft.contentFormat === "text"}
            disabled={draft.contentFormat === "messages" && toText(draft) === null}
            title="One message of the user"
            onClick={() => change(toText(draft) ?? {})}
          >
            Text
          </button>
          <button
            type="button"
            aria-pressed={draft.contentFormat === "messages"}
            title="A JSON list of messages with roles"
            onClick={() => change(toMessages(draft))}
          >
            Messages
          </button>
        </fieldset>
      </div>
      <div data-field="content" className="editor-code">
        <Part fallback={<SkeletonRows />}>
          <CodeEditor
            value={draft.content}
            format={draft.contentFormat}
            variables={draft.variables}
            onChange={(content) => change({ content })}
            onReady={(ready) => {
              handle.current = ready;
            }}
          />
        </Part>
      </div>
      {error !== undefined && (
        <p className="ferr editor-note" role="alert">
          <AlertIcon /> {error}
        </p>
      )}
      <LintList onShow={(place) => handle.current?.show(place)} onDescribe={setOpenVariable} />
      <VariableList open={openVariable} onOpen={setOpenVariable} />
    </section>
  );
}

const toMessages = ({ content, contentFormat }: Draft): Partial<Draft> =>
  contentFormat === "messages"
    ? {}
    : { contentFormat: "messages", content: JSON.stringify([{ role: "user", content }], null, 2) };

/** null: more than a message of the user. */
function toText({ content, contentFormat }: Draft): Partial<Draft> | null {
  if (contentFormat === "text") return {};
  const messages = readMessages(content);
  const [message, ...others] = messages ?? [];
  if (!message || others.length > 0 || message.role !== "user") return null;
  return { contentFormat: "text", content: message.content };
}
