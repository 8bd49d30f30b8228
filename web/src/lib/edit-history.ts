/** What was done to a document, so that each step can be taken back and done again. */
export interface EditHistory<Document> {
  past: readonly Edit<Document>[];
  present: Document;
  future: readonly Edit<Document>[];
}

interface Edit<Document> {
  before: Document;
  after: Document;
  /** Edits with the same key shortly after each other are one: the letters of a field. */
  mergeKey: string | null;
  at: number;
}

const MAX_EDITS = 500;
const MERGE_MS = 1_000;

export const startHistory = <Document>(present: Document): EditHistory<Document> => ({
  past: [],
  present,
  future: [],
});

export function recordEdit<Document>(
  history: EditHistory<Document>,
  after: Document,
  { mergeKey = null, at }: { mergeKey?: string | null; at: number },
): EditHistory<Document> {
  if (after === history.present) return history;
  const last = history.past.at(-1);
  const isSame = last !== undefined && mergeKey !== null && last.mergeKey === mergeKey;
  if (isSame && at - last.at < MERGE_MS && history.future.length === 0)
    return { past: [...history.past.slice(0, -1), { ...last, after, at }], present: after, future: [] };
  const edit = { before: history.present, after, mergeKey, at };
  return { past: [...history.past, edit].slice(-MAX_EDITS), present: after, future: [] };
}

export function undo<Document>(history: EditHistory<Document>): EditHistory<Document> {
  const edit = history.past.at(-1);
  if (!edit) return history;
  return { past: history.past.slice(0, -1), present: edit.before, future: [edit, ...history.future] };
}

export function redo<Document>(history: EditHistory<Document>): EditHistory<Document> {
  const [edit, ...future] = history.future;
  return edit ? { past: [...history.past, edit], present: edit.after, future } : history;
}
