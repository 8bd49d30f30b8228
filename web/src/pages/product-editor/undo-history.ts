import type { Draft, DraftField } from "./draft-fields.ts";

interface Step {
  before: Partial<Draft>;
  after: Partial<Draft>;
  at: number;
}

/** Typing within this time is one step. */
const STEP_MS = 1_000;
const MOST_STEPS = 200;

/** The changes of one tab, by field, so that they can be taken back and made again. */
export class UndoHistory {
  #undo: Step[] = [];
  #redo: Step[] = [];

  get canUndo(): boolean {
    return this.#undo.length > 0;
  }

  get canRedo(): boolean {
    return this.#redo.length > 0;
  }

  record(before: Draft, after: Draft, fields: DraftField[]): void {
    const at = Date.now();
    const last = this.#undo.at(-1);
    if (last && isOneStep(last, fields) && at - last.at < STEP_MS) {
      last.before = { ...pick(before, fields), ...last.before };
      last.after = { ...last.after, ...pick(after, fields) };
      last.at = at;
    } else this.#undo.push({ before: pick(before, fields), after: pick(after, fields), at });
    this.#undo = this.#undo.slice(-MOST_STEPS);
    this.#redo = [];
  }

  /** The values before the last change; null: there is none. */
  undo(): Partial<Draft> | null {
    const step = this.#undo.pop();
    if (step) this.#redo.push(step);
    return step?.before ?? null;
  }

  redo(): Partial<Draft> | null {
    const step = this.#redo.pop();
    // A step that was made again does not grow with what is typed next.
    if (step) this.#undo.push({ ...step, at: 0 });
    return step?.after ?? null;
  }

  /** Taking back an own change must not take back what another side changed since. */
  forget(fields: DraftField[]): void {
    const isKept = ({ before }: Step) => !fields.some((field) => field in before);
    this.#undo = this.#undo.filter(isKept);
    this.#redo = this.#redo.filter(isKept);
  }

  clear(): void {
    this.#undo = [];
    this.#redo = [];
  }
}

/** Typing in the prompt also changes its variables, at some keys. */
const isOneStep = ({ after }: Step, fields: DraftField[]): boolean =>
  "content" in after
    ? fields.includes("content")
    : fields.length === Object.keys(after).length && fields.every((field) => field in after);

const pick = (draft: Draft, fields: DraftField[]): Partial<Draft> =>
  Object.fromEntries(fields.map((field) => [field, draft[field]]));
