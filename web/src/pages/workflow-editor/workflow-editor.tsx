import "./workflow-editor.css";
import { useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { lazy, useState } from "react";
import { EmptyState } from "../../components/empty-state.tsx";
import { Part } from "../../components/part.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { ConflictStrip } from "../../components/workflow-editor/conflict-strip.tsx";
import { EditorBar } from "../../components/workflow-editor/editor-bar.tsx";
import { EditorProvider, INPUT, RESULT } from "../../components/workflow-editor/editor-context.ts";
import { Palette } from "../../components/workflow-editor/palette.tsx";
import { ProblemBar, ProblemList } from "../../components/workflow-editor/problem-bar.tsx";
import { StepForm } from "../../components/workflow-editor/step-form.tsx";
import { StepList } from "../../components/workflow-editor/step-list.tsx";
import { StepResult } from "../../components/workflow-editor/step-run.tsx";
import { type OpenEditor, useWorkflowEditor } from "../../components/workflow-editor/use-workflow-editor.ts";
import { InputForm, ResultForm } from "../../components/workflow-editor/workflow-fields.tsx";
import { useIsNarrow } from "../../lib/use-is-narrow.ts";
import { useKeyDown } from "../../lib/use-key-down.ts";
import { useTitle } from "../../lib/use-title.ts";
import { editedProductQuery } from "../../queries/workflow-editor.ts";
import type { EditorView } from "../../routes/workflow-editor.tsx";

const Canvas = lazy(() => import("../../components/workflow-editor/canvas.tsx"));
const Source = lazy(() => import("../../components/workflow-editor/source.tsx"));
const WorkflowTests = lazy(() => import("../../components/workflow-editor/workflow-tests.tsx"));

const route = getRouteApi("/studio/workflows/$productId");

export default function WorkflowEditorPage() {
  const { productId } = route.useParams();
  const client = useQueryClient();
  const data = client.getQueryData(editedProductQuery(productId).queryKey);
  // What is published is a new beginning: its history starts anew.
  const [published, setPublished] = useState(0);
  const reload = async () => {
    await client.fetchQuery({ ...editedProductQuery(productId), staleTime: 0 });
    setPublished((count) => count + 1);
  };
  if (data && (data.product.type !== "WORKFLOW" || data.product.access.reason !== "author"))
    return <NotEditable isWorkflow={data.product.type === "WORKFLOW"} />;
  return <Editor key={`${productId} ${published}`} onPublished={() => void reload()} />;
}

const NotEditable = ({ isWorkflow }: { isWorkflow: boolean }) => (
  <main className="page narrow" id="content">
    <h1 className="page-title">Workflow editor</h1>
    <EmptyState
      title={
        isWorkflow ? "Only its author can edit this workflow." : "This product is a prompt, not a workflow."
      }
      action={
        <Link to="/studio" className="btn">
          Studio
        </Link>
      }
    >
      Your own workflows are in the studio.
    </EmptyState>
  </main>
);

function Editor({ onPublished }: { onPublished: () => void }) {
  const editor = useWorkflowEditor();
  const { product, document, saver, isChecked } = editor;
  useTitle(`Edit ${product.title}`);
  useEditorKeys(editor);
  const isNarrow = useIsNarrow();
  const wanted = route.useSearch({ select: ({ view = "canvas" }) => view });
  const view: EditorView = isNarrow && wanted === "split" ? "canvas" : wanted;
  return (
    <EditorProvider value={editor}>
      <main id="content" className={`workflow-editor is-${view}`}>
        <EditorBar editor={editor} view={view} isNarrow={isNarrow} onPublished={onPublished} />
        <ConflictStrip saver={saver} text={document.text} execute={editor.execute} />
        <EditorArea editor={editor} view={view} isNarrow={isNarrow} />
        <ProblemBar
          isChecked={isChecked}
          note={
            product.status === "published" ? `Version ${product.version} stays on sale until you publish` : ""
          }
        />
      </main>
    </EditorProvider>
  );
}

interface EditorAreaProps {
  editor: OpenEditor;
  view: EditorView;
  isNarrow: boolean;
}

function EditorArea({ editor, view, isNarrow }: EditorAreaProps) {
  if (view === "tests")
    return (
      <Part fallback={<SkeletonRows />}>
        <WorkflowTests editor={editor} />
      </Part>
    );
  if (isNarrow && view === "canvas") return <StepList />;
  return (
    <div className="workflow-area">
      {view !== "source" && !isNarrow && <Palette />}
      <div className="workflow-middle">
        <Part fallback={<SkeletonRows />}>
          {view !== "source" && <Canvas />}
          {view !== "canvas" && <Source />}
        </Part>
      </div>
      {view === "source" ? <ProblemList /> : <SelectedForm editor={editor} />}
    </div>
  );
}

/** The frame stays when another step is selected, so that the browser lays out the form alone. */
const SelectedForm = ({ editor }: { editor: OpenEditor }) => (
  <div className="workflow-side">
    <FormOf editor={editor} />
  </div>
);

function FormOf({ editor: { selection, steps } }: { editor: OpenEditor }) {
  if (selection === INPUT) return <InputForm />;
  if (selection === RESULT) return <ResultForm />;
  const step = steps.find(({ id }) => id === selection);
  if (!step)
    return (
      <section className="workflow-form" aria-label="Step">
        <p className="workflow-form-body soft sm">
          Choose a step on the canvas, or add one: press A. Arrows lead from step to step, Enter opens its
          fields, Tab its ports, Del removes it.
        </p>
      </section>
    );
  return (
    <>
      <StepForm key={step.id} step={step} />
      <StepResult step={step} />
    </>
  );
}

/** They also work inside fields, whose own history would know nothing of the canvas. */
function useEditorKeys({ undo, redo, saver }: OpenEditor): void {
  const onKeyDown = (event: KeyboardEvent) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
    if (document.querySelector("dialog[open]") !== null) return;
    const key = event.key.toLowerCase();
    const hasOwnUndo =
      event.target instanceof HTMLElement && event.target.closest("[data-own-undo]") !== null;
    if (hasOwnUndo && key !== "s") return;
    const action =
      key === "s"
        ? () => void saver.saveNow()
        : key === "y" || (key === "z" && event.shiftKey)
          ? redo
          : key === "z"
            ? undo
            : null;
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  };
  useKeyDown(onKeyDown, { capture: true });
}
