import { getRouteApi, Link } from "@tanstack/react-router";
import { lazy, memo, type ReactNode, useMemo, useState } from "react";
import { curlOf } from "../../lib/curl.ts";
import { describeError } from "../../lib/errors.ts";
import { LOCALE } from "../../lib/format.ts";
import { literalOf } from "../../lib/object-literal.ts";
import type { EditorView } from "../../routes/workflow-editor.tsx";
import {
  ChevronIcon,
  CloudIcon,
  CodeIcon,
  ColumnsIcon,
  FlaskIcon,
  PlayIcon,
  RedoIcon,
  UndoIcon,
  WorkflowIcon,
} from "../icons.tsx";
import { Part } from "../part.tsx";
import { ShowAsCode } from "../show-as-code.tsx";
import { useSaveState } from "./use-save-state.ts";
import type { OpenEditor } from "./use-workflow-editor.ts";
import { savesItself } from "./workflow-saver.ts";

const TestDialog = lazy(() => import("./test-dialog.tsx"));
const PublishDialog = lazy(() => import("./publish-dialog.tsx"));
const VersionsDialog = lazy(() => import("./versions-dialog.tsx"));

const route = getRouteApi("/studio/workflows/$productId");

interface EditorBarProps {
  editor: OpenEditor;
  view: EditorView;
  isNarrow: boolean;
  onPublished: () => void;
}

export function EditorBar({ editor, view, isNarrow, onPublished }: EditorBarProps) {
  const { product, document, problems, saver } = editor;
  const [dialog, setDialog] = useState<"publish" | "versions" | null>(null);
  const close = () => setDialog(null);
  const state = useSaveState(saver);
  const isOnSale = product.status === "published";
  const code = useMemo(() => {
    const change = { content: document.text };
    return {
      curl: curlOf("PATCH", `/products/${product.id}`, change),
      sdk: `await stoa.products.update("${product.id}", ${literalOf(change)});`,
    };
  }, [product.id, document.text]);
  return (
    <header className="workflow-bar">
      <a
        className="iconb"
        href={`/studio/products/${product.id}`}
        aria-label={`Back to ${product.title}`}
        title="Title, price, images"
      >
        <ChevronIcon className="flip" />
      </a>
      <h1 className="cut" dir="auto" title={product.title}>
        {product.title}
      </h1>
      <nav className="seg s" aria-label="Views">
        <ViewLink view="canvas" current={view} />
        {!isNarrow && <ViewLink view="split" current={view} />}
        <ViewLink view="source" current={view} />
        <ViewLink view="tests" current={view} />
      </nav>
      <SaveLabel editor={editor} />
      <span className="tag workflow-version">
        {isOnSale ? `Version ${product.version} on sale` : `Draft ${product.version}`}
      </span>
      <button
        type="button"
        className="iconb"
        aria-label="Undo"
        title="Ctrl Z"
        disabled={!editor.canUndo}
        onClick={editor.undo}
      >
        <UndoIcon />
      </button>
      <button
        type="button"
        className="iconb"
        aria-label="Redo"
        title="Shift Ctrl Z"
        disabled={!editor.canRedo}
        onClick={editor.redo}
      >
        <RedoIcon />
      </button>
      <span className="workflow-more">
        <button type="button" className="btn quiet s" onClick={() => setDialog("versions")}>
          Compare
        </button>
        <ShowAsCode {...code} />
      </span>
      <button type="button" className="btn" onClick={() => editor.openTest(null)}>
        <PlayIcon /> Test run
      </button>
      <button
        type="button"
        className={problems.length === 0 ? "btn primary" : "btn"}
        disabled={problems.length > 0 || state.kind === "conflict" || (isOnSale && !saver.isChanged)}
        onClick={() => setDialog("publish")}
      >
        Publish
      </button>
      <Part>
        {editor.test && (
          <TestDialog
            {...(editor.test.stepId !== null && { stepId: editor.test.stepId })}
            onClose={editor.closeTest}
          />
        )}
        {dialog === "publish" && <PublishDialog saver={saver} onClose={close} onPublished={onPublished} />}
        {dialog === "versions" && <VersionsDialog onClose={close} />}
      </Part>
    </header>
  );
}

const VIEWS: Record<EditorView, { label: string; icon: ReactNode }> = {
  canvas: { label: "Canvas", icon: <WorkflowIcon /> },
  split: { label: "Split", icon: <ColumnsIcon /> },
  source: { label: "Source", icon: <CodeIcon /> },
  tests: { label: "Tests", icon: <FlaskIcon /> },
};

/** Not rendered with each step that opens: a link of the router costs more than a field. */
const ViewLink = memo(function ViewLink({ view, current }: { view: EditorView; current: EditorView }) {
  return (
    <Link
      from={route.id}
      to="."
      search={(old) => ({ ...old, view: view === "canvas" ? undefined : view })}
      replace
      resetScroll={false}
      activeOptions={{ exact: true, includeSearch: true }}
      className={view === current ? "on" : ""}
      {...(view === current ? { "aria-current": "true" as const } : { "aria-current": undefined })}
    >
      {VIEWS[view].icon} {VIEWS[view].label}
    </Link>
  );
});

const clock = (at: number): string =>
  new Date(at).toLocaleTimeString(LOCALE, { hour: "2-digit", minute: "2-digit" });

function SaveLabel({ editor: { saver, product, problems } }: { editor: OpenEditor }) {
  const state = useSaveState(saver);
  const words = {
    saved: () => (state.kind === "saved" && state.at !== null ? `Saved ${clock(state.at)}` : "Saved"),
    waiting: () => "Saves in a moment",
    saving: () => "Saving",
    local: () =>
      savesItself(product) && problems.length > 0
        ? "Kept in this browser until the problems are solved"
        : "Kept in this browser until you publish",
    failed: () =>
      state.kind === "failed" ? `Not saved, kept in this browser: ${describeError(state.error).text}` : "",
    conflict: () => "Not saved: choose below",
  };
  return (
    <span className="row sm soft workflow-saved" role="status">
      <CloudIcon /> <span className="cut">{words[state.kind]()}</span>
    </span>
  );
}
