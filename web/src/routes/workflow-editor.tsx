import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "../lib/lazy-page.ts";
import { editedProductQuery } from "../queries/workflow-editor.ts";
import { requireAccount, rootRoute } from "./root.tsx";

export type EditorView = "canvas" | "split" | "source" | "tests";

export interface EditorSearch {
  view?: EditorView;
  step?: string;
  /** The run whose values and states are shown. */
  run?: string;
}

const VIEWS: readonly string[] = ["split", "source", "tests"];

const editorRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/studio/workflows/$productId",
  beforeLoad: requireAccount,
  validateSearch: ({ view, step, run }: Record<string, unknown>): EditorSearch => ({
    ...(typeof view === "string" && VIEWS.includes(view) && { view: view as EditorView }),
    ...(typeof step === "string" && step !== "" && { step }),
    ...(typeof run === "string" && run !== "" && { run }),
  }),
  loader: ({ context: { queryClient }, params }) =>
    queryClient.ensureQueryData(editedProductQuery(params.productId)),
  component: lazyPage(() => import("../pages/workflow-editor/workflow-editor.tsx")),
});

export const workflowEditorRoutes = [editorRoute] as const;
