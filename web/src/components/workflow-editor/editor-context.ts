import type { ExecutionDetail, ProductDetail } from "@stoa/sdk";
import { createContext, useContext } from "react";
import type { WorkflowCommand } from "../../lib/workflow-commands.ts";
import type { EditedStep, JsonObject, WorkflowDocument } from "../../lib/workflow-document.ts";
import type { WorkflowProblem } from "../../lib/workflow-problems.ts";
import type { ShownStep } from "../running/step-state.ts";

/** What stands in the form: a step, the input, the result, or nothing. No step can have the ids of the other two. */
export type Selection = string | null;
export const INPUT = "#input";
export const RESULT = "#result";

export interface EditedValue {
  value: unknown;
  error: string | null;
}

/** The run whose values the fields show and whose states the canvas shows. */
export interface ShownRun {
  execution: ExecutionDetail;
  steps: ShownStep[];
  /** The latest output of each step, of this run or of one that was shown before: what can be pinned. */
  outputs: Readonly<Record<string, unknown>>;
}

export interface WorkflowEditor {
  product: ProductDetail;
  document: WorkflowDocument;
  /** The last definition that could be read; the text may have become unreadable since. */
  definition: JsonObject;
  isReadable: boolean;
  steps: EditedStep[];
  problems: WorkflowProblem[];
  selection: Selection;
  select: (selection: Selection, options?: { field?: string }) => void;
  /** Commands with the same key shortly after each other are undone together. */
  execute: (command: WorkflowCommand, mergeKey?: string) => void;
  /** Adds a step behind the selected one, or between two, selects it, and returns its id. */
  addStep: (type: string, at?: { position?: { x: number; y: number }; between?: [string, string] }) => string;
  run: ShownRun | null;
  showRun: (executionId: string) => void;
  /** Asks for what a run needs; with a step, of this one. */
  openTest: (stepId: string | null) => void;
  /** Of the selected step or the result, by field as problems name it. */
  values: ReadonlyMap<string, EditedValue>;
}

const EditorContext = createContext<WorkflowEditor | null>(null);
export const EditorProvider = EditorContext.Provider;

export function useEditor(): WorkflowEditor {
  const editor = useContext(EditorContext);
  if (!editor) throw new Error("There is no workflow editor around this part");
  return editor;
}
