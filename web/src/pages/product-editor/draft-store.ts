import { ApiError, ConnectionError } from "@stoa/sdk";
import { noticeEndOfSession } from "../../api.ts";
import { fieldErrors } from "../../components/field.tsx";
import { describeError } from "../../lib/errors.ts";
import { deriveVariables, reconcileVariables } from "../../lib/prompt-variables.ts";
import { type DraftBackend, type Snapshot, StaleDraft } from "./draft-backends.ts";
import {
  changedFields,
  DRAFT_FIELDS,
  type Draft,
  type DraftField,
  fieldOfPath,
  isSame,
} from "./draft-fields.ts";
import { type FieldErrors, findFieldErrors, isWrong } from "./find-errors.ts";
import { type Conflict, mergeDrafts, resolveConflict, type Side, withVariables } from "./merge-drafts.ts";
import { UndoHistory } from "./undo-history.ts";

export type SaveState =
  | { kind: "saved"; at: number | null }
  | { kind: "waiting" }
  | { kind: "saving" }
  | { kind: "held"; fields: DraftField[] }
  | { kind: "failed"; text: string }
  | { kind: "conflict" };

export interface DraftState {
  draft: Draft;
  /** As it is stored. */
  base: Draft;
  save: SaveState;
  errors: FieldErrors;
  conflict: Conflict | null;
  canUndo: boolean;
  canRedo: boolean;
}

const SAVE_AFTER_MS = 900;
const SAVE_AGAIN_MS = 5_000;

/**
 * The draft of one tab. Changes are stored shortly after they are made, each with the tag of the state that it was made on. If that state
 * is not the present one, what the other side changed is taken over, and the person decides about fields that both sides changed.
 */
export class DraftStore {
  readonly #backend: DraftBackend;
  readonly #onTaken: (fields: DraftField[]) => void;
  readonly #listeners = new Set<() => void>();
  #tag: string;
  #state: DraftState;
  readonly #history = new UndoHistory();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running: Promise<void> | null = null;
  /** What the service refused, until it changes. */
  #refused: { field: DraftField; value: unknown; sentence: string }[] = [];
  /** What is stored, once the open conflict is resolved. */
  #afterConflict: Draft | null = null;

  constructor(
    backend: DraftBackend,
    { draft, tag }: Snapshot,
    { base = draft, onTaken }: { base?: Draft; onTaken: (fields: DraftField[]) => void },
  ) {
    this.#backend = backend;
    this.#onTaken = onTaken;
    this.#tag = tag;
    this.#state = {
      ...{ draft, base, errors: findFieldErrors(draft), conflict: null },
      save: { kind: "saved", at: null },
      ...{ canUndo: false, canRedo: false },
    };
  }

  getState = (): DraftState => this.#state;

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  get isDirty(): boolean {
    return changedFields(this.#state.base, this.#state.draft).length > 0;
  }

  change(part: Partial<Draft>): void {
    const { draft } = this.#state;
    const next = { ...draft, ...part };
    if ("content" in part || "contentFormat" in part) {
      const before = deriveVariables(draft.content, draft.contentFormat);
      next.variables = reconcileVariables(next.content, next.contentFormat, next.variables, before);
    }
    const fields = changedFields(draft, next);
    if (fields.length === 0) return;
    this.#history.record(draft, next, fields);
    this.#apply(next);
  }

  undo(): void {
    if (!this.#state.conflict) this.#restore(this.#history.undo());
  }

  redo(): void {
    if (!this.#state.conflict) this.#restore(this.#history.redo());
  }

  /** Stores what is not stored yet. Resolves when nothing is left to do without the person. */
  async saveNow(): Promise<void> {
    clearTimeout(this.#timer);
    this.#running ??= this.#sync().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Takes over what others have changed, if this tab has no open question. */
  async refresh(): Promise<void> {
    if (this.#running || this.#state.conflict) return;
    const present = await this.#backend.load();
    if (this.#running || this.#state.conflict || present.tag === this.#tag) return;
    this.#merge(present);
    if (this.isDirty) this.#schedule(SAVE_AFTER_MS);
  }

  /** The state is now this one, for example after a publication. */
  reset({ draft, tag }: Snapshot): void {
    clearTimeout(this.#timer);
    this.#tag = tag;
    this.#history.clear();
    this.#set({
      draft,
      base: draft,
      conflict: null,
      errors: findFieldErrors(draft),
      save: { kind: "saved", at: Date.now() },
    });
  }

  /** Compares the draft with another present state, and asks about what both changed. Returns whether nothing is open. */
  compareWith(base: Draft, theirs: Draft): boolean {
    const { merged, conflicts, taken } = mergeDrafts(base, this.#state.draft, theirs);
    if (conflicts.length > 0) {
      this.#open({ base, mine: this.#state.draft, theirs, fields: conflicts }, this.#state.base);
      return false;
    }
    this.#history.forget(taken);
    this.#apply(merged);
    return true;
  }

  resolve(choices: Partial<Record<DraftField, Side>>): void {
    const { conflict, draft } = this.#state;
    const stored = this.#afterConflict;
    if (!conflict || !stored) return;
    const present = { ...conflict, mine: draft };
    const { conflicts } = mergeDrafts(conflict.base, draft, conflict.theirs);
    // Something else was changed while the question was open.
    if (conflicts.some((field) => !choices[field])) {
      this.#open({ ...present, fields: conflicts }, stored);
      return;
    }
    const chosen = resolveConflict(present, choices);
    this.#history.forget(changedFields(draft, chosen));
    this.#set({ conflict: null, base: stored });
    this.#apply(chosen);
    void this.saveNow();
  }

  /** Shows problems that the service named in another request at their fields. Returns those fields. */
  refuse(error: unknown): DraftField[] {
    const named = Object.entries(fieldErrors(error)).flatMap(([path, sentence]) => {
      const field = fieldOfPath(path);
      return field ? [{ field, value: this.#state.draft[field], sentence }] : [];
    });
    this.#refused = [...this.#refused, ...named];
    this.#set({ errors: this.#findErrors(this.#state.draft) });
    return named.map(({ field }) => field);
  }

  dispose(): void {
    clearTimeout(this.#timer);
  }

  #set(part: Partial<DraftState>): void {
    this.#state = {
      ...this.#state,
      ...part,
      canUndo: this.#history.canUndo,
      canRedo: this.#history.canRedo,
    };
    for (const listener of this.#listeners) listener();
  }

  #apply(draft: Draft): void {
    const errors = this.#findErrors(draft);
    this.#set({ draft, errors, ...(!this.#state.conflict && { save: { kind: "waiting" } }) });
    this.#schedule(SAVE_AFTER_MS);
  }

  #findErrors(draft: Draft): FieldErrors {
    this.#refused = this.#refused.filter(({ field, value }) => isSame(draft[field], value));
    const refused = this.#refused.map(({ field, sentence }) => [field, sentence]);
    return { ...Object.fromEntries(refused), ...findFieldErrors(draft) };
  }

  #restore(part: Partial<Draft> | null): void {
    if (part) this.#apply({ ...this.#state.draft, ...part });
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.saveNow(), ms);
  }

  async #sync(): Promise<void> {
    while (!this.#state.conflict) {
      const { base, draft, errors } = this.#state;
      const changed = changedFields(base, draft);
      const isHeld = (field: DraftField) => !this.#backend.isLocal && isWrong(field, errors);
      const fields = changed.filter((field) => !isHeld(field));
      if (fields.length === 0) {
        const held = changed.filter(isHeld);
        if (held.length > 0) return this.#set({ save: { kind: "held", fields: held } });
        const { save } = this.#state;
        return this.#set({ save: save.kind === "saved" ? save : { kind: "saved", at: Date.now() } });
      }
      this.#set({ save: { kind: "saving" } });
      if (!(await this.#trySave(draft, fields))) return;
    }
  }

  /** Returns whether to go on. */
  async #trySave(draft: Draft, fields: DraftField[]): Promise<boolean> {
    try {
      const stored = await this.#backend.save(draft, fields, this.#tag);
      this.#acknowledge(draft, fields, stored);
      return true;
    } catch (error) {
      if (error instanceof StaleDraft) return this.#takeOver();
      return this.#fail(error, fields);
    }
  }

  /** What was sent is stored, even where the service wrote it in another form; the text in the form stays as typed. */
  #acknowledge(sent: Draft, fields: DraftField[], stored: Snapshot): void {
    this.#tag = stored.tag;
    const { draft } = this.#state;
    const base = { ...stored.draft };
    const next = { ...draft };
    for (const field of DRAFT_FIELDS) {
      if (fields.includes(field) && field !== "samples") Object.assign(base, { [field]: sent[field] });
      else if (
        isSame(draft[field], sent[field]) &&
        (field === "samples" || isSame(sent[field], this.#state.base[field]))
      )
        Object.assign(next, { [field]: stored.draft[field] });
    }
    this.#set({ base, draft: next });
  }

  async #takeOver(): Promise<boolean> {
    try {
      this.#merge(await this.#backend.load());
      return true;
    } catch (error) {
      return this.#fail(error);
    }
  }

  #merge(present: Snapshot): void {
    const { base, draft } = this.#state;
    const { merged, conflicts, taken } = mergeDrafts(base, draft, present.draft);
    this.#tag = present.tag;
    this.#history.forget(taken);
    if (taken.length > 0) this.#onTaken(taken);
    if (conflicts.length > 0) {
      this.#open({ base, mine: draft, theirs: present.draft, fields: conflicts }, present.draft);
      return;
    }
    const next = withVariables(merged);
    this.#set({ base: present.draft, draft: next, errors: this.#findErrors(next) });
  }

  #open(conflict: Conflict, stored: Draft): void {
    clearTimeout(this.#timer);
    this.#afterConflict = stored;
    this.#set({ conflict, save: { kind: "conflict" } });
  }

  /** Returns whether the rest can be stored without the fields that were refused. */
  #fail(error: unknown, sent: DraftField[] = []): boolean {
    noticeEndOfSession(error);
    if (this.refuse(error).some((field) => sent.includes(field))) return true;
    this.#set({ save: { kind: "failed", text: describeError(error).text } });
    const wait = error instanceof ApiError && error.retryAfter ? error.retryAfter * 1_000 : SAVE_AGAIN_MS;
    if (error instanceof ConnectionError || (error instanceof ApiError && error.isRetryable))
      this.#schedule(wait);
    return false;
  }
}
