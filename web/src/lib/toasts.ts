import { describeError } from "./errors.ts";

export interface Toast {
  id: number;
  text: string;
  isError: boolean;
  requestId: string | null;
  /** Takes the change back. */
  undo?: () => void;
}

type Listener = (toasts: Toast[]) => void;

let toasts: Toast[] = [];
let nextId = 1;
const listeners = new Set<Listener>();

function publish(changed: Toast[]): void {
  toasts = changed;
  for (const listener of listeners) listener(changed);
}

export const currentToasts = (): Toast[] => toasts;

export function onToasts(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function closeToast(id: number): void {
  publish(toasts.filter((toast) => toast.id !== id));
}

/** What was done, for five seconds; ten with `undo`. */
export function showToast(text: string, { undo }: { undo?: () => void } = {}): void {
  publish([...toasts, { id: nextId++, text, isError: false, requestId: null, ...(undo && { undo }) }]);
}

/** What failed, until it is closed, with the id of the request. */
export function showError(what: string, error: unknown): void {
  const { text, requestId } = describeError(error);
  publish([...toasts, { id: nextId++, text: `${what}: ${text}`, isError: true, requestId }]);
}
