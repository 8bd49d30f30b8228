import type { ProductDetail } from "@stoa/sdk";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, useRouter } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { type EditHistory, recordEdit, redo, startHistory, undo } from "../../lib/edit-history.ts";
import { useDebounced } from "../../lib/use-debounced.ts";
import { applyCommand, type WorkflowCommand } from "../../lib/workflow-commands.ts";
import {
  freeId,
  indexOfStep,
  isObject,
  type JsonObject,
  newStep,
  parseText,
  type StepType,
  stepsOf,
  type WorkflowDocument,
} from "../../lib/workflow-document.ts";
import { toProblem, type WorkflowProblem } from "../../lib/workflow-problems.ts";
import { checkQuery, editedProductQuery } from "../../queries/workflow-editor.ts";
import { type EditedValue, RESULT, type Selection, type WorkflowEditor } from "./editor-context.ts";
import { findCopy, readPositions, removeCopy, writePositions } from "./local-copies.ts";
import { useShownRun } from "./use-shown-run.ts";
import { WorkflowSaver } from "./workflow-saver.ts";

const route = getRouteApi("/studio/workflows/$productId");
const CHECK_AFTER_MS = 250;
const ADDRESS_AFTER_MS = 200;

export interface OpenEditor extends WorkflowEditor {
  saver: WorkflowSaver;
  /** The open dialog of a test run; `stepId` null: of the whole. */
  test: { stepId: string | null } | null;
  closeTest: () => void;
  undo: () => void;
  redo: () => void;
  canUndo: boolean;
  canRedo: boolean;
  /** Whether the problems are those of the text as it is now. */
  isChecked: boolean;
}

/** The state of the editor: the document with its history, where it is saved, and what the service says about it. */
export function useWorkflowEditor(): OpenEditor {
  const { productId } = route.useParams();
  const { data } = useSuspenseQuery(editedProductQuery(productId));
  const { saver, history, change } = useDocument(data.product, data.etag);
  const document = history.present;
  const { definition, isReadable } = useDefinition(document.text);
  const steps = useMemo(() => stepsOf(definition), [definition]);
  const router = useRouter();
  // Once: a later change of the address follows the selection.
  const [selection, setSelection] = useState<Selection>(() => stepOf(router.latestLocation.search));
  const { run, showRun } = useShownRun(productId, steps);
  const { problems, values, isChecked, isUnknown } = useCheck(
    document.text,
    selection === RESULT || steps.some(({ id }) => id === selection) ? selection : null,
    run?.execution.id ?? null,
  );
  const isValid = problems.length === 0;
  useEffect(() => {
    // Without an answer the service decides when it is saved.
    if (isChecked || isUnknown) saver.setChecked(document.text, isValid || isUnknown);
  }, [saver, document.text, isChecked, isUnknown, isValid]);
  const execute = useCallback(
    (command: WorkflowCommand, mergeKey?: string) =>
      change((old) =>
        recordEdit(old, applyCommand(old.present, command), {
          mergeKey: mergeKey ?? null,
          at: performance.now(),
        }),
      ),
    [change],
  );
  const select = useSelect(setSelection);
  const current = useRef({ steps, selection });
  current.current = { steps, selection };
  const addStep = useCallback<WorkflowEditor["addStep"]>(
    (type, { position, between } = {}) => {
      const { steps, selection } = current.current;
      const id = freeId(steps, type);
      const isAfter = steps.some((one) => one.id === selection) && position === undefined;
      const needs = between ? [between[0]] : isAfter && selection !== null ? [selection] : [];
      const added = newStep(type as StepType, id, needs, providerOf(steps));
      const before = between && { before: between[1] };
      execute({ kind: "add-step", step: added, ...(position && { position }), ...before });
      select(id);
      return id;
    },
    [execute, select],
  );
  // Here, so that a form that is shown anew does not close it.
  const [test, setTest] = useState<OpenEditor["test"]>(null);
  return {
    test,
    openTest: useCallback((stepId: string | null) => setTest({ stepId }), []),
    closeTest: useCallback(() => setTest(null), []),
    ...{ product: data.product, document, definition, isReadable, steps, problems, selection, select },
    ...{ execute, addStep, run, showRun, values, saver, isChecked },
    undo: useCallback(() => change(undo), [change]),
    redo: useCallback(() => change(redo), [change]),
    canUndo: history.past.length > 0,
    canRedo: history.future.length > 0,
  };
}

/** The provider that the workflow calls already. */
function providerOf(steps: readonly JsonObject[]): string {
  const works = steps.map((step) => (isObject(step["do"]) ? step["do"] : step));
  const found = works.find(({ provider }) => typeof provider === "string")?.["provider"];
  return typeof found === "string" ? found : "openai";
}

function useDocument(product: ProductDetail, etag: string) {
  const [{ saver, first }] = useState(() => open(product, etag));
  const [history, setHistory] = useState<EditHistory<WorkflowDocument>>(() => startHistory(first));
  const { text, positions } = history.present;
  useEffect(() => saver.edit(text), [saver, text]);
  useEffect(() => writePositions(product.id, positions), [product.id, positions]);
  useEffect(() => () => saver.close(), [saver]);
  const change = useCallback(
    (edit: (old: EditHistory<WorkflowDocument>) => EditHistory<WorkflowDocument>) => setHistory(edit),
    [],
  );
  return { saver, history, change };
}

/** With the unsaved copy of a tab, on top of what is saved. */
function open(product: ProductDetail, etag: string) {
  const saved = { text: product.content ?? "", etag };
  const found = findCopy(product.id, saved.text);
  const first = { text: found?.copy.text ?? saved.text, positions: readPositions(product.id) };
  const isStale = found !== null && found.copy.base !== saved.text;
  const base = isStale ? { text: found.copy.base, etag: "" } : saved;
  const saver = new WorkflowSaver(product, base, first.text);
  if (found) removeCopy(found.key);
  saver.storeCopy();
  if (isStale) saver.showConflict(saved);
  else if (found) saver.acknowledge(saved);
  return { saver, first };
}

/** While the text cannot be read, the canvas shows what it could read last. */
function useDefinition(text: string) {
  const parsed = parseText(text);
  const last = useRef<JsonObject>({});
  if (parsed) last.current = parsed;
  return { definition: last.current, isReadable: parsed !== null };
}

const NO_PROBLEMS: WorkflowProblem[] = [];

/** `selection`: a step, the result, or null for what has no values. */
function useCheck(text: string, selection: Selection, executionId: string | null) {
  const settled = useDebounced(text, CHECK_AFTER_MS);
  const wanted = useMemo(
    () =>
      selection === null || executionId === null
        ? null
        : { ...(selection !== RESULT && { stepId: selection }), executionId },
    [selection, executionId],
  );
  const { data, isPlaceholderData, isError } = useQuery(checkQuery(settled, wanted));
  const problems = useMemo(
    () => data?.problems.map((problem) => toProblem(settled, problem)) ?? NO_PROBLEMS,
    [data, settled],
  );
  const values = useMemo(() => {
    const own =
      selection === RESULT
        ? "content."
        : `content.steps[${indexOfStep(parseText(settled), selection ?? "")}].`;
    return new Map<string, EditedValue>(
      data?.values
        .filter(({ field }) => field.startsWith(own))
        .map(({ field, value, error }) => [field.slice(own.length), { value, error }]),
    );
  }, [data, settled, selection]);
  const isChecked = settled === text && data !== undefined && !isPlaceholderData;
  return { problems, values, isChecked, isUnknown: settled === text && isError };
}

const stepOf = ({ step }: { step?: unknown }): Selection => (typeof step === "string" ? step : null);

/** The step is in the address, too: a link to the page leads to it. It follows at rest, because it costs more than the step's form. */
function useSelect(setSelection: (selection: Selection) => void): WorkflowEditor["select"] {
  const navigate = route.useNavigate();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  return useCallback(
    (selection, { field } = {}) => {
      setSelection(selection);
      clearTimeout(timer.current);
      timer.current = setTimeout(
        () =>
          void navigate({
            search: (old) => ({ ...old, step: selection ?? undefined }),
            replace: true,
            resetScroll: false,
          }),
        ADDRESS_AFTER_MS,
      );
      if (field === undefined) return;
      // The form of the step is there after the next frame.
      requestAnimationFrame(() =>
        requestAnimationFrame(() => {
          const wrapper = window.document.querySelector(`[data-field="${CSS.escape(field)}"]`);
          wrapper?.querySelector<HTMLElement>("input, textarea, select, button")?.focus();
        }),
      );
    },
    [navigate, setSelection],
  );
}
